"""Baselines that gate.yaml names, and what is wrong with them.

One is a file of `launch baseline save`, a bare validation, a run's folder or a bundle.
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
    """The validation, and what is known of the run it comes from: `digest`, `engine`. Raises UsageError."""
    if path.is_file() and path.suffix == ".json":
        try:
            data = json.loads(path.read_bytes())
        except ValueError as error:
            raise UsageError(f"not JSON: {error}", where=str(path)) from error
        kept = data if isinstance(data, dict) else {}
        return _validation(kept.get("validation", kept), path), {key: kept[key] for key in ("digest",) if key in kept}
    with opened(path) as run:
        return _validation(run.read("validation"), path), run.info


def baseline_remarks(side: Side, affected: Iterable[str]) -> Iterator[Remark]:
    """Names that are no profile, files that are no baseline, baselines of another profile than the one judged."""
    reached = set(affected)
    for name, (path, where) in side.policy.baselines.items():
        place = side.place(where)
        if name not in side.own:
            yield _remark("gate-names-unknown-profile", f"there is no profile `{name}`", place, name)
        elif name in reached:
            yield from _checked(side, name, path, place)
    for recorded in side.policy.replay:
        if recorded.profile and recorded.profile not in side.own:
            message = f"there is no profile `{recorded.profile}`"
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
        message = f"the baseline was measured with other flags ({info['digest']}): measure it anew when this is merged"
        fails = "baseline-stale" in side.policy.fail
        yield _remark("baseline-stale", message, place, name, Status.FAIL if fails else Status.NOTE)


def _validation(data: object, path: Path) -> dict[str, Any]:
    if not isinstance(data, dict) or "verdicts" not in data:
        raise UsageError("it holds no validation", where=str(path), hint="`launch baseline save RUN NAME` writes one")
    return data


def _remark(rule: str, message: str, place: Place, profile: str, status: Status = Status.FAIL) -> Remark:
    severity = Severity.WARNING if status is Status.NOTE else Severity.ERROR
    return Remark(rule=rule, status=status, severity=severity, message=message, place=place, profile=profile)
