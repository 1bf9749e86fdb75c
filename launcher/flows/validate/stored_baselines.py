"""Baselines: validations stored under a name, for later validations to be compared with.

Each is one JSON file, `NAME.json`, in `baselines/` of the state folder or of a folder that is committed together with
its profiles. A validated run is a baseline too. `checks.after.comparison` and the probes decide what is compared and
how.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from checks.catalog.yaml_reader import did_you_mean
from launcher.errors import RunNotFound, UsageError
from launcher.run.store import Run, RunStore, default_root

FOLDER = "baselines"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}\Z")
_NUMBERS = re.compile(r"\[\n\s+([^\[\]{}\"]*)\n\s*\]")  # a list of numbers, one per line


class Stored(Struct, frozen=True, kw_only=True):
    """A stored validation and its origin."""

    name: str
    path: str
    validation: Mapping[str, Any]
    about: Mapping[str, Any]  # saved, run, profile, digest, host; empty for a run


def folders(profile: str = "") -> tuple[Path, ...]:
    """Return the folders to search for baselines, nearest first.

    These are ./baselines, `baselines/` in the profile's folder and the three above it, and the state folder.
    """
    near = [parent / FOLDER for parent in Path(profile).resolve().parents[:4]] if profile else []
    return tuple(dict.fromkeys([Path(FOLDER).resolve(), *near, default_root() / FOLDER]))


def save(run: Run, name: str, folder: Path, now: datetime) -> Path:
    """Store a run's validation as `folder`/NAME.json and return that path.

    Raises UsageError for an invalid name, or for a run without a validation.
    """
    if not NAME.match(name):
        hint = "start with a letter or digit; use at most 80 letters, digits, dots, hyphens and underscores"
        raise UsageError(f"invalid name for a baseline: `{name}`", hint=hint)
    validation = run.read("validation")
    if validation is None:
        raise UsageError(f"run {run.id} was never validated", hint=f"`launch validate {run.id} --suite standard`")
    info = run.info
    document: dict[str, Any] = {
        "name": name,
        "saved": now.isoformat(timespec="seconds"),
        "run": run.id,
        **{key: info[key] for key in ("profile", "digest", "host") if key in info},
        "validation": validation,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    temporary = path.with_name(f".{name}.{os.getpid()}")
    # each list of numbers on one line: short enough to review and compare in a repository
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    temporary.write_text(_NUMBERS.sub(lambda numbers: "[" + " ".join(numbers[1].split()) + "]", text), "utf-8")
    temporary.replace(path)
    return path


def find(text: str, where: Sequence[Path], store: RunStore) -> Stored:
    """Return the baseline with that name or file, otherwise the validation of the run with that id.

    Raises UsageError if there is neither, and for a file that does not contain a validation.
    """
    paths = [Path(text)] if text.endswith(".json") else [folder / f"{text}.json" for folder in where]
    for path in paths:
        if path.is_file():
            return _read(path)
    known = sorted(path.stem for path in _files(where))
    try:
        run = store.find(text)
    except RunNotFound as error:
        hint = did_you_mean(text, known) or "`launch baseline save RUN NAME` creates a baseline"
        raise UsageError(f"no baseline and no run is named `{text}`", hint=hint) from error
    validation = run.read("validation")
    if validation is None:
        raise UsageError(f"run {run.id} was never validated", hint=f"`launch validate {run.id} --suite standard`")
    return Stored(name=run.id, path=str(run.folder / "validation.json"), validation=validation, about={})


def available(where: Sequence[Path]) -> list[Stored]:
    """Return every baseline, sorted by name. A nearer folder hides the same name further on. Raises UsageError."""
    nearest: dict[str, Path] = {}
    for path in _files(where):
        nearest.setdefault(path.stem, path)
    return [_read(nearest[name]) for name in sorted(nearest)]


def _files(where: Iterable[Path]) -> list[Path]:
    return [path for folder in where if folder.is_dir() for path in sorted(folder.glob("[!.]*.json"))]


def _read(path: Path) -> Stored:
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the baseline {path}: {error}") from error
    # a bare validation.json, such as a run's, is accepted too
    validation = data.get("validation", data) if isinstance(data, dict) else None
    if not isinstance(validation, dict) or not isinstance(validation.get("verdicts"), list):
        raise UsageError(f"{path} does not contain a validation", hint="`launch baseline save RUN NAME` writes one")
    about = {key: value for key, value in data.items() if key != "validation"} if "validation" in data else {}
    return Stored(name=str(data.get("name") or path.stem), path=str(path), validation=validation, about=about)
