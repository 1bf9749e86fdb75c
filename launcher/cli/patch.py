"""A remedy as a profile: a new file that extends the old one, never a change behind the user's back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from checks.model import Diagnosis, Remedy
from checks.yamlfile import dump
from launcher.errors import UsageError
from launcher.runs import Run


def write_patched(run: Run, diagnosis: Diagnosis, name: str) -> str:
    """Write profiles/NAME.yaml with the first remedy that changes flags or variables; what was written, in words."""
    remedy = first_applicable(diagnosis)
    path = Path("profiles") / f"{name}.yaml"
    if path.exists():
        raise UsageError(f"{path} is already there", hint="choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    profile = str(run.info.get("profile", ""))
    path.write_text(dump(patched(profile, run.id, diagnosis, remedy)))
    changed = ", ".join((*remedy.set, *remedy.env)) or "less"
    return f"wrote {path}: {profile} with {changed} (launch show {name} --resolved)"


def first_applicable(diagnosis: Diagnosis) -> Remedy:
    """The first remedy that is a change of the profile. Raises UsageError."""
    for remedy in diagnosis.remedies:
        if remedy.concrete and (remedy.set or remedy.unset or remedy.env or remedy.unset_env):
            return remedy
    raise UsageError(
        "no remedy of this cause can be written into a profile",
        hint="they are installs, upgrades, or leave a value for you to choose",
    )


def patched(parent: str, run_id: str, diagnosis: Diagnosis, remedy: Remedy) -> dict[str, Any]:
    """The new profile as YAML data."""
    cause = diagnosis.cause.id if diagnosis.cause else "unknown"
    flags: dict[str, Any] = {flag: {"value": value, "why": f"remedy for {cause}"} for flag, value in remedy.set.items()}
    flags |= dict.fromkeys(remedy.unset)
    env: dict[str, Any] = {**remedy.env, **dict.fromkeys(remedy.unset_env)}
    data: dict[str, Any] = {
        "why": f"{parent}, changed after run {run_id} met {cause}. {remedy.text}",
        "extends": parent,
    }
    return {**data, **({"flags": flags} if flags else {}), **({"env": env} if env else {})}
