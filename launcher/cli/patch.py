"""`--apply`: write a remedy as a new profile that extends the old one. The old profile is never changed."""

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
    """Write profiles/NAME.yaml with the first remedy that changes flags or variables; return a line for the user.

    Raises UsageError if the file exists or no remedy can be written into a profile.
    """
    parent = str(run.info.get("profile", ""))
    return _write(Path("profiles") / f"{name}.yaml", parent, f"run {run.id}", diagnosis)


def write_patched_profile(profile: Profile, log: str, diagnosis: Diagnosis, name: str) -> str:
    """Do the same for a log without a run: the new file is next to the profile, so that `extends` resolves."""
    return _write(Path(profile.path).parent / f"{name}.yaml", profile.name, f"the log {log}", diagnosis, profile)


def _write(path: Path, parent: str, source: str, diagnosis: Diagnosis, profile: Profile | None = None) -> str:
    remedy = first_applicable(diagnosis)
    if path.exists():
        raise UsageError(f"`{path}` already exists", hint="choose another name for --apply")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dump(patched(parent, source, diagnosis, _applicable(remedy, profile))))
    added = ", ".join((*remedy.set, *remedy.env))
    change = f"with {added}" if added else f"without {', '.join((*remedy.unset, *remedy.unset_env))}"
    folder = "" if path.parent == Path("profiles") else f" --profiles {path.parent}"
    return f"wrote {path}: {parent} {change}; review it with `launch show {path.stem}{folder} --resolved`"


def _applicable(remedy: Remedy, profile: Profile | None) -> Remedy:
    """Drop removals of flags that the profile does not set: a profile can remove only what a parent sets."""
    if profile is None:
        return remedy
    unset = tuple(name for name in remedy.unset if name in profile.flags)
    return replace(remedy, unset=unset, unset_env=tuple(name for name in remedy.unset_env if name in profile.env))


def first_applicable(diagnosis: Diagnosis) -> Remedy:
    """Return the first remedy that changes flags or variables. Raises UsageError if there is none."""
    for remedy in diagnosis.remedies:
        if remedy.concrete and (remedy.set or remedy.unset or remedy.env or remedy.unset_env):
            return remedy
    raise UsageError(
        "no remedy of this cause can be written into a profile",
        hint="the remedies are installs, upgrades, or values that you have to choose; apply one by hand",
    )


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
