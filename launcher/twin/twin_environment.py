"""Keep the Python environment in which the twin runs: an interpreter with torch, and the packages that a release pins.

torch is large, so all releases share one interpreter. The packages are those that the engine's argument code imports,
with the version of transformers that the release pins, because the engine patches it when it is imported; releases
that pin the same version share one folder.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct, convert
from msgspec.structs import asdict

from launcher.errors import HostCommandFailed, UsageError
from launcher.knowledge_cache import cache_folder
from launcher.transport.answers import last_line
from launcher.transport.base import Command, Transport
from launcher.twin.release_store import Release

# Distributions that argument code imports, beside transformers and torch. Kernel packages are stand-ins.
PLAIN = (
    "aiohttp", "einops", "fastapi", "interegular", "msgspec", "numpy", "openai", "orjson", "packaging",
    "partial_json_parser", "pillow", "prometheus-client", "psutil", "pybase64", "pydantic", "python-multipart", "pyzmq",
    "requests", "setproctitle", "tqdm", "uvicorn", "uvloop", "ipython",
)  # fmt: skip
KEPT = (*PLAIN, "torch", "transformers", "tokenizers", "huggingface-hub", "safetensors", "regex", "filelock", "pyyaml")
INTERPRETER = "interpreter.json"
_INSTALL = 1800.0  # seconds
_ASK = """
import importlib.metadata, json, sys, torch
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(["%d%d" % sys.version_info[:2], found]))
"""
Tell = Callable[[str], None]


class Environment(Struct, frozen=True, kw_only=True):
    """Where the twin of a release runs."""

    python: str
    packages: Path
    transformers: str  # the version that the release pins


class _Interpreter(Struct, frozen=True, kw_only=True):
    """An interpreter with torch. `own` is its version of transformers if it has all that the twin imports."""

    python: str
    tag: str  # `311`
    own: str = ""

    def packages(self, transformers: str) -> Path:
        """Return the folder of packages for a version of transformers; an empty one where its own will do."""
        if transformers and transformers == self.own:
            return _folder() / "packages-none"
        return _folder() / f"packages-transformers-{transformers or 'newest'}-cp{self.tag}"


def existing(release: Release) -> Environment | None:
    """Return the environment of a release; None if it was not made."""
    known = _recorded()
    if known is None:
        return None
    pin = release.pin("transformers")
    packages = known.packages(pin)
    made = (packages / ".complete").is_file()
    return Environment(python=known.python, packages=packages, transformers=pin) if made else None


def prepare(transport: Transport, release: Release, tell: Tell, python: str = "") -> Environment:
    """Make the environment of a release, where it is missing. Raises UsageError with the reason if that fails.

    `python` is an interpreter that has torch; without it, the one that was used before, that of the engine which
    `make engine` installs, or a new environment with torch from the package index.
    """
    known = _asked(transport, _chosen(transport, python, tell))
    _folder().mkdir(parents=True, exist_ok=True)
    (_folder() / INTERPRETER).write_text(json.dumps(asdict(known)))
    pin = release.pin("transformers")
    packages = known.packages(pin)
    if not (packages / ".complete").is_file():
        if pin and pin == known.own:
            packages.mkdir(exist_ok=True)
        else:
            tell(f"installing transformers {pin} and {len(PLAIN)} small packages for the twin")
            wanted = [f"transformers=={pin}" if pin else "transformers", *_pinned(release)]
            _pip(transport, known.python, "--upgrade", "--target", str(packages), *wanted)
        (packages / ".complete").touch()
    return Environment(python=known.python, packages=packages, transformers=pin)


def _pinned(release: Release) -> list[str]:
    """Return the plain packages, with the versions that the release pins."""
    pins = {item.name.lower().replace("_", "-"): str(item.specifier) for item in release.parsed()}
    return [name + pins.get(name.lower().replace("_", "-"), "") for name in PLAIN]


def _chosen(transport: Transport, asked: str, tell: Tell) -> str:
    if asked:
        return asked
    known = _recorded()
    if known is not None and os.access(known.python, os.X_OK):
        return known.python
    try:
        return str(json.loads((cache_folder() / "engine.json").read_bytes())["python"])
    except (OSError, ValueError, KeyError):
        return _made(transport, tell)


def _made(transport: Transport, tell: Tell) -> str:
    """Make an environment with torch."""
    place = _folder() / "python"
    tell("installing torch for the twin (once; up to 3 GB, or 200 MB if pip's index offers builds for the CPU)")
    result = transport.run(Command(argv=(sys.executable, "-m", "venv", str(place)), label="venv", timeout=300))
    if result.exit:
        raise UsageError(f"cannot make an environment: {last_line(result.stderr)}", where=str(place))
    python = str(place / "bin" / "python")
    _pip(transport, python, "torch", "numpy")
    return python


def _asked(transport: Transport, python: str) -> _Interpreter:
    """Return what an interpreter has. Raises UsageError if it cannot import torch."""
    command = Command(argv=(python, "-E", "-s", "-c", _ASK, "transformers", *PLAIN), label="torch", timeout=120)
    result = transport.run(command)
    try:
        tag, found = json.loads(result.stdout)
    except ValueError:
        reason = last_line(result.stderr) or f"exit {result.exit}"
        raise UsageError(f"{python} cannot import torch: {reason}", hint="name another one with --python") from None
    own = str(found.get("transformers", "")) if set(PLAIN) <= set(found) else ""
    return _Interpreter(python=python, tag=str(tag), own=own)


def _pip(transport: Transport, python: str, *words: str) -> None:
    options = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-compile")
    command = Command(
        argv=(sys.executable, "-m", "pip", "--python", python, "install", *options, *words),
        label="pip install",
        timeout=_INSTALL,
    )
    result = transport.run(command)
    if result.exit:
        raise HostCommandFailed(
            f"pip could not install the twin's packages: {last_line(result.stderr)}",
            where=transport.name,
            hint="check that the package index is reachable, and run the same command again",
        )


def _recorded() -> _Interpreter | None:
    try:
        return convert(json.loads((_folder() / INTERPRETER).read_bytes()), _Interpreter)
    except (OSError, ValueError):
        return None


def _folder() -> Path:
    return cache_folder() / "twin"
