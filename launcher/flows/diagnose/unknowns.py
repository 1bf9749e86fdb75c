"""Failures that no signature names, over all runs: those with one fingerprint are one open question."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from checks.vocabulary import LogVerdict
from launcher.flows.diagnose.run_diagnosis import diagnose_run
from launcher.run.store import Run, State

_BAD = frozenset({State.CRASHED, State.STALLED, State.TIMED_OUT, State.LOST})


class Unknown(Struct, frozen=True, kw_only=True):
    """One fingerprint."""

    fingerprint: str
    sentence: str
    runs: tuple[str, ...]  # ids, newest first
    engines: tuple[str, ...]
    hosts: tuple[str, ...]


def unknowns(runs: Iterable[Run]) -> tuple[Unknown, ...]:
    """Grouped by fingerprint, the most frequent first. `runs`: newest first. A run never diagnosed is diagnosed now."""
    groups: dict[str, list[tuple[Run, dict[str, Any]]]] = {}
    for run in runs:
        gist = _gist(run)
        if gist and gist.get("verdict", LogVerdict.UNKNOWN) == LogVerdict.UNKNOWN and not gist["cause"]:
            groups.setdefault(gist["fingerprint"] or "without fingerprint", []).append((run, gist))
    found = (_unknown(name, members) for name, members in groups.items())
    return tuple(sorted(found, key=lambda item: (-len(item.runs), item.fingerprint)))


def _gist(run: Run) -> dict[str, Any] | None:
    if not run.log.exists() or run.log.stat().st_size == 0:
        return None
    found = run.read("diagnosis")
    if found is None and run.state in _BAD:
        diagnose_run(run)
        found = run.read("diagnosis")
    return dict(found) if found else None


def _unknown(fingerprint: str, members: list[tuple[Run, dict[str, Any]]]) -> Unknown:
    infos = [run.info for run, _ in members]
    return Unknown(
        fingerprint=fingerprint,
        sentence=str(members[0][1]["sentence"]),
        runs=tuple(run.id for run, _ in members),
        engines=tuple(sorted({str(info.get("engine") or "?") for info in infos})),
        hosts=tuple(sorted({str(info.get("host") or "?") for info in infos})),
    )
