"""Group the unexplained failures of all runs: runs with the same fingerprint are one failure to explain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from checks.vocabulary import LogVerdict
from launcher.flows.diagnose.run_diagnosis import diagnose_run
from launcher.run.state import State
from launcher.run.store import Run

_BAD = frozenset({State.CRASHED, State.STALLED, State.TIMED_OUT, State.LOST})


class Unknown(Struct, frozen=True, kw_only=True):
    """One failure that no known cause explains, identified by its fingerprint, and the runs that show it."""

    fingerprint: str
    sentence: str
    runs: tuple[str, ...]  # ids, newest first
    engines: tuple[str, ...]
    hosts: tuple[str, ...]


def unknowns(runs: Iterable[Run]) -> tuple[Unknown, ...]:
    """Return the unexplained failures, the most frequent first. `runs` must be sorted newest first.

    A failed run that was never diagnosed is diagnosed now.
    """
    groups: dict[str, list[tuple[Run, dict[str, Any]]]] = {}
    for run in runs:
        gist = _gist(run)
        if gist and gist.get("verdict", LogVerdict.UNKNOWN) == LogVerdict.UNKNOWN and not gist["cause"]:
            groups.setdefault(gist["fingerprint"] or "without fingerprint", []).append((run, gist))
    failures = (_unknown(name, members) for name, members in groups.items())
    return tuple(sorted(failures, key=lambda item: (-len(item.runs), item.fingerprint)))


def _gist(run: Run) -> dict[str, Any] | None:
    if not run.log.exists() or run.log.stat().st_size == 0:
        return None
    stored = run.read("diagnosis")
    if stored is None and run.state in _BAD:
        diagnose_run(run)
        stored = run.read("diagnosis")
    return dict(stored) if stored else None


def _unknown(fingerprint: str, members: list[tuple[Run, dict[str, Any]]]) -> Unknown:
    infos = [run.info for run, _ in members]
    return Unknown(
        fingerprint=fingerprint,
        sentence=str(members[0][1]["sentence"]),
        runs=tuple(run.id for run, _ in members),
        engines=tuple(sorted({str(info.get("engine") or "?") for info in infos})),
        hosts=tuple(sorted({str(info.get("host") or "?") for info in infos})),
    )
