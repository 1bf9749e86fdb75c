"""What the error handler prints: an expected error with its hint, or a report file for an internal error."""

from __future__ import annotations

import platform
import sys
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from checks.after.probes.expectations import ExpectError
from checks.catalog.yaml_reader import YamlError
from launcher.cli.exits import Exit, of_error
from launcher.errors import LauncherError, ProfileError, UsageError
from launcher.run.store import default_root
from launcher.secrets import Masker


def report(error: Exception, program: str, words: Sequence[str]) -> int:
    """Report the error on standard error and return the exit code."""
    if isinstance(error, ExpectError):
        error = UsageError(str(error), hint="docs/validation.md lists the keys of `expect`")
    if isinstance(error, YamlError):
        error = ProfileError(error.message, where=error.where, hint=error.hint)
    if isinstance(error, LauncherError):
        where = f"{error.where}: " if error.where and error.where not in error.message else ""
        sys.stderr.write(f"{program}: {where}{error.message}\n")
        if error.hint:
            sys.stderr.write(f"  hint: {error.hint}\n")
        return of_error(error)
    return _internal_error(error, program, words)


def release() -> str:
    """Return the version of this program, or `(not installed)` for a source tree that was never installed."""
    try:
        return version("sglang-launcher")
    except PackageNotFoundError:
        return "(not installed)"


def _internal_error(error: Exception, program: str, words: Sequence[str]) -> int:
    lines = [
        f"sglang-launcher {release()}, Python {platform.python_version()}, {platform.platform()}",
        f"{program} {' '.join(words)}",
        "".join(traceback.format_exception(error)),
    ]
    text, mask = "\n".join(lines), Masker()
    sys.stderr.write(mask(f"{program}: internal error: {type(error).__name__}: {error}\n"))
    try:
        path = _written(mask(text), program)
    except OSError as unwritten:
        sys.stderr.write(f"  no report was written ({unwritten}); it would contain:\n{mask(text)}")
        return Exit.BUG
    sys.stderr.write(f"  report with the traceback: {path}\n")
    return Exit.BUG


def _written(text: str, program: str) -> Path:
    folder = default_root() / "reports"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{program}.txt"
    path.write_text(text, "utf-8", "backslashreplace")  # words that are not UTF-8 reach Python as lone surrogates
    return path
