"""`--apply`: write a remedy as a new profile that extends the old one. The old profile is never changed."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any, TypeAlias

from msgspec.structs import replace

from checks.catalog.yaml_reader import dump
from checks.vocabulary import Diagnosis, Remedy
from launcher.errors import UsageError
from launcher.profile.file import Profile
from launcher.run.store import Run

Removable: TypeAlias = tuple[Set[str], Set[str]]
"""The flags and the variables that a profile sets, so that a profile that extends it can remove them."""


def write_patched(run: Run, diagnosis: Diagnosis, name: str) -> str:
    """Write profiles/NAME.yaml with the first remedy that changes flags or variables; return a line for the user.

    Raises UsageError if the file exists or no remedy can be written into a profile.
    """
    stored = run.read("profile")
    return _write(
        Path("profiles") / f"{name}.yaml",
        str(run.info.get("profile", "")),
        f"run {run.id}",
        diagnosis,
        None if stored is None else (_written(stored.get("flags")), _written(stored.get("env"))),
    )


def write_patched_profile(profile: Profile, log: str, diagnosis: Diagnosis, name: str) -> str:
    """Do the same for a log without a run: the new file is next to the profile, so that `extends` resolves."""
    path = Path(profile.path).parent / f"{name}.yaml"
    return _write(path, profile.name, f"the log {log}", diagnosis, (profile.flags.keys(), profile.env.keys()))


def _written(settings: Mapping[str, Any] | None) -> Set[str]:
    """Return the names that the profile of a run sets itself, without those of the command line."""
    items = (settings or {}).items()
    return {name for name, item in items if not str(item.get("where", "")).startswith("--")}


def _write(path: Path, parent: str, source: str, diagnosis: Diagnosis, removable: Removable | None) -> str:
    remedy = first_applicable(diagnosis, removable)
    if path.exists():
        raise UsageError(f"`{path}` already exists", hint="choose another name for --apply")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dump(patched(parent, source, diagnosis, remedy)))
    added = ", ".join((*remedy.set, *remedy.env))
    change = f"with {added}" if added else f"without {', '.join((*remedy.unset, *remedy.unset_env))}"
    folder = "" if path.parent == Path("profiles") else f" --profiles {path.parent}"
    return f"wrote {path}: {parent} {change}; review it with `launch show {path.stem}{folder} --resolved`"


def first_applicable(diagnosis: Diagnosis, removable: Removable | None = None) -> Remedy:
    """Return the first remedy that changes flags or variables. Raises UsageError if there is none.

    A profile can remove only what a parent sets, so all other removals are dropped; None: what it sets is unknown.
    """
    for remedy in diagnosis.remedies:
        narrowed = remedy if removable is None else _narrowed(remedy, *removable)
        if narrowed.concrete and (narrowed.set or narrowed.unset or narrowed.env or narrowed.unset_env):
            return narrowed
    raise UsageError(
        "no remedy of this cause can be written into a profile",
        hint="the remedies are installs, upgrades, or values that you have to choose; apply one by hand",
    )


def _narrowed(remedy: Remedy, flags: Set[str], env: Set[str]) -> Remedy:
    unset = tuple(name for name in remedy.unset if name in flags)
    return replace(remedy, unset=unset, unset_env=tuple(name for name in remedy.unset_env if name in env))


def patched(parent: str, source: str, diagnosis: Diagnosis, remedy: Remedy) -> dict[str, Any]:
    """Return the new profile as YAML data. `source` names the run or log that was diagnosed."""
    cause = diagnosis.cause.id if diagnosis.cause else "unknown"
    flags: dict[str, Any] = {flag: {"value": value, "why": f"remedy for {cause}"} for flag, value in remedy.set.items()}
    flags |= dict.fromkeys(remedy.unset)
    env: dict[str, Any] = {**remedy.env, **dict.fromkeys(remedy.unset_env)}
    data: dict[str, Any] = {
        "why": f"{parent}, changed after {source} was diagnosed with {cause}. {remedy.text}",
        "extends": parent,
    }
    return {**data, **({"flags": flags} if flags else {}), **({"env": env} if env else {})}
