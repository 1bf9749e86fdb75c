"""Baselines: validations kept under a name, which later ones are compared with.

One JSON file each, `NAME.json`: in `baselines/` of the state folder, or of a folder that is committed together with its
profiles. A run that was validated is a baseline too. What is compared, and how, is `checks.after.comparison` and the
probes.
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
_NUMBERS = re.compile(r"\[\n\s+([^\[\]{}\"]*)\n\s*\]")  # a list without texts, one number a line


class Stored(Struct, frozen=True, kw_only=True):
    """A validation and where it comes from."""

    name: str
    path: str
    validation: Mapping[str, Any]
    about: Mapping[str, Any]  # saved, run, profile, digest, host; empty for a run


def folders(profile: str = "") -> tuple[Path, ...]:
    """Where baselines are looked for: ./baselines, beside the profile and above it, then the state folder."""
    near = [parent / FOLDER for parent in Path(profile).resolve().parents[:4]] if profile else []
    return tuple(dict.fromkeys([Path(FOLDER).resolve(), *near, default_root() / FOLDER]))


def save(run: Run, name: str, folder: Path, now: datetime) -> Path:
    """Keep a run's validation as `folder`/NAME.json. Raises UsageError for a bad name, or a run without validation."""
    if not NAME.match(name):
        raise UsageError(f"`{name}` cannot name a baseline", hint="letters, digits, dots, hyphens, underscores")
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
    draft = path.with_name(f".{name}.{os.getpid()}")
    # one list of numbers a line: short enough to be read and compared in a repository
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    draft.write_text(_NUMBERS.sub(lambda found: "[" + " ".join(found[1].split()) + "]", text), "utf-8")
    draft.replace(path)
    return path


def find(text: str, where: Sequence[Path], store: RunStore) -> Stored:
    """The baseline of that name or file, else the validation of that run. Raises UsageError when there is neither."""
    paths = [Path(text)] if text.endswith(".json") else [folder / f"{text}.json" for folder in where]
    for path in paths:
        if path.is_file():
            return _read(path)
    known = sorted(path.stem for path in _files(where))
    try:
        run = store.find(text)
    except RunNotFound as error:
        hint = did_you_mean(text, known) or "`launch baseline save RUN NAME` makes one"
        raise UsageError(f"neither a baseline nor a run `{text}`", hint=hint) from error
    validation = run.read("validation")
    if validation is None:
        raise UsageError(f"run {run.id} was never validated", hint=f"`launch validate {run.id} --suite standard`")
    return Stored(name=run.id, path=str(run.folder / "validation.json"), validation=validation, about={})


def available(where: Sequence[Path]) -> list[Stored]:
    """Every baseline, a nearer one in place of a farther one of the same name."""
    found: dict[str, Path] = {}
    for path in _files(where):
        found.setdefault(path.stem, path)
    return [_read(found[name]) for name in sorted(found)]


def _files(where: Iterable[Path]) -> list[Path]:
    return [path for folder in where if folder.is_dir() for path in sorted(folder.glob("[!.]*.json"))]


def _read(path: Path) -> Stored:
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    # a bare validation.json, such as a run's, will do as well
    validation = data.get("validation", data) if isinstance(data, dict) else None
    if not isinstance(validation, dict) or not isinstance(validation.get("verdicts"), list):
        raise UsageError(f"{path} holds no validation", hint="`launch baseline save RUN NAME` writes one")
    about = {key: value for key, value in data.items() if key != "validation"} if "validation" in data else {}
    return Stored(name=str(data.get("name") or path.stem), path=str(path), validation=validation, about=about)
