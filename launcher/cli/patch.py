"""A remedy as a profile: a new file that extends the old one, never a change behind the user's back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from checks.catalog.yaml_reader import dump
from checks.vocabulary import Diagnosis, Remedy
from launcher.errors import UsageError
from launcher.profile.file import Profile
from launcher.run.store import Run


def write_patched(run: Run, diagnosis: Diagnosis, name: str) -> str:
    """Write profiles/NAME.yaml with the first remedy that changes flags or variables; what was written, in words."""
    parent = str(run.info.get("profile", ""))
    return _write(Path("profiles") / f"{name}.yaml", parent, f"run {run.id}", diagnosis)


def write_patched_profile(profile: Profile, log: str, diagnosis: Diagnosis, name: str) -> str:
    """The same for a profile whose log is no run's: beside its file, where its name is found for sure."""
    return _write(Path(profile.path).parent / f"{name}.yaml", profile.name, f"the log {log}", diagnosis, profile)


def _write(path: Path, parent: str, met: str, diagnosis: Diagnosis, profile: Profile | None = None) -> str:
    remedy = first_applicable(diagnosis)
    if path.exists():
        raise UsageError(f"{path} is already there", hint="choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dump(patched(parent, met, diagnosis, _fitting(remedy, profile))))
    changed = ", ".join((*remedy.set, *remedy.env)) or "less"
    where = "" if path.parent == Path("profiles") else f" --profiles {path.parent}"
    return f"wrote {path}: {parent} with {changed} (launch show {path.stem}{where} --resolved)"


def _fitting(remedy: Remedy, profile: Profile | None) -> Remedy:
    """Without what the profile does not set: a profile may take away only what a parent gives."""
    if profile is None:
        return remedy
    unset = tuple(name for name in remedy.unset if name in profile.flags)
    return replace(remedy, unset=unset, unset_env=tuple(name for name in remedy.unset_env if name in profile.env))


def first_applicable(diagnosis: Diagnosis) -> Remedy:
    """The first remedy that is a change of the profile. Raises UsageError."""
    for remedy in diagnosis.remedies:
        if remedy.concrete and (remedy.set or remedy.unset or remedy.env or remedy.unset_env):
            return remedy
    raise UsageError(
        "no remedy of this cause can be written into a profile",
        hint="they are installs, upgrades, or leave a value for you to choose",
    )


def patched(parent: str, met: str, diagnosis: Diagnosis, remedy: Remedy) -> dict[str, Any]:
    """The new profile as YAML data."""
    cause = diagnosis.cause.id if diagnosis.cause else "unknown"
    flags: dict[str, Any] = {flag: {"value": value, "why": f"remedy for {cause}"} for flag, value in remedy.set.items()}
    flags |= dict.fromkeys(remedy.unset)
    env: dict[str, Any] = {**remedy.env, **dict.fromkeys(remedy.unset_env)}
    data: dict[str, Any] = {
        "why": f"{parent}, changed after {met} met {cause}. {remedy.text}",
        "extends": parent,
    }
    return {**data, **({"flags": flags} if flags else {}), **({"env": env} if env else {})}
