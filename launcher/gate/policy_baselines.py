"""Read the baselines that gate.yaml names, and report faults in them.

A baseline is a file from `launch baseline save`, a bare validation, a run's folder, or a bundle.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from checks.vocabulary import Severity
from launcher.errors import LauncherError, UsageError
from launcher.gate.evidence_bundle import opened
from launcher.gate.report import Place, Remark, Status
from launcher.gate.side import Side
from launcher.profile.file import Profile
from launcher.profile.resolve import for_engine


def read_baseline(path: Path) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return the validation, and `digest` and `engine` of its run where known. Raises UsageError, RunNotFound."""
    if path.is_file() and path.suffix == ".json":
        try:
            data = json.loads(path.read_bytes())
        except ValueError as error:
            raise UsageError(f"not JSON: {error}", where=str(path)) from error
        stored = data if isinstance(data, dict) else {}
        info = {key: stored[key] for key in ("digest",) if key in stored}
        return _validation(stored.get("validation", stored), path), info
    with opened(path) as run:
        return _validation(run.read("validation"), path), run.info


def baseline_remarks(side: Side, affected: Iterable[str]) -> Iterator[Remark]:
    """Yield remarks on unknown profiles, files that are not baselines, and baselines measured with other flags.

    `affected` are the names of the profiles that are judged; only their baselines are read.
    """
    judged = set(affected)
    for name, (path, where) in side.policy.baselines.items():
        place = side.place(where)
        if name not in side.profile_files:
            yield _remark("gate-names-unknown-profile", f"there is no profile named `{name}`", place, name)
        elif name in judged:
            yield from _checked(side, name, path, place)
    for recorded in side.policy.replay:
        if recorded.profile and recorded.profile not in side.profile_files:
            message = f"there is no profile named `{recorded.profile}`"
            yield _remark("gate-names-unknown-profile", message, side.place(recorded.where), recorded.profile)


def _checked(side: Side, name: str, path: str, place: Place) -> Iterator[Remark]:
    try:
        validation, info = read_baseline(side.root / path)
    except LauncherError as error:
        yield _remark("baseline-unreadable", f"{path}: {error.message}", place, name)
        return
    profile = side.profile(name)
    if not isinstance(profile, Profile):
        return
    version = str(info.get("engine") or validation.get("engine") or "")
    if info.get("digest") and info["digest"] != for_engine(profile, version or None).digest:
        message = f"the baseline was measured with other flags ({info['digest']}): measure it again after the merge"
        fails = "baseline-stale" in side.policy.fail
        yield _remark("baseline-stale", message, place, name, Status.FAIL if fails else Status.NOTE)


def _validation(data: object, path: Path) -> dict[str, Any]:
    if not isinstance(data, dict) or "verdicts" not in data:
        hint = "`launch baseline save RUN NAME` writes a baseline"
        raise UsageError("no validation in this baseline", where=str(path), hint=hint)
    return data


def _remark(rule: str, message: str, place: Place, profile: str, status: Status = Status.FAIL) -> Remark:
    severity = Severity.WARNING if status is Status.NOTE else Severity.ERROR
    return Remark(rule=rule, status=status, severity=severity, message=message, place=place, profile=profile)
