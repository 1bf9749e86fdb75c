"""Everything read from a log before it is judged: kept lines, incidents, phases, facts. The only builder of Reading.

A log that several starts were written to is cut here, so that each start can be judged on its own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from checks.catalog.conditions import Facts
from checks.during.log import phases, restarts, server_args
from checks.during.log.incidents import Incident, incidents
from checks.during.log.phases import Milestone
from checks.during.log.scan import Scanned
from checks.during.log_facts import merge
from checks.during.signature_index import Index
from checks.during.unexplained import phase_by_frames


class Reading(Struct, frozen=True, kw_only=True):
    """One log, or one start of a log that holds several."""

    scanned: Scanned
    incidents: tuple[Incident, ...]
    milestones: tuple[Milestone, ...]
    facts: Facts
    index: Index

    @property
    def last_phase(self) -> str:
        """The phase that the engine reached; empty when no line shows one."""
        return self.milestones[-1].phase if self.milestones else ""

    @property
    def is_foreign(self) -> bool:
        """Whether no line looks like a line of an engine."""
        return not self.milestones and not any(line.headed for line in self.scanned.lines)


def read(scanned: Scanned, index: Index, known: Mapping[str, Any] | None = None, engine: str = "") -> Reading:
    """The reading of one log.

    `known` is what a caller knows of the launch, in the form of a facts file: `{engine_version, gpu, model, flags, env,
    packages, observed, host}`, all optional. It takes precedence over what the log says about itself.
    """
    reached = phases.milestones(scanned.lines, index.phases)
    launch = server_args.read(scanned.lines)
    found = incidents(scanned.lines)
    facts = merge(launch, known or {}, engine, _phase(reached, found))
    return Reading(scanned=scanned, incidents=found, milestones=reached, facts=facts, index=index)


def starts_of(reading: Reading) -> tuple[Reading, ...]:
    """The reading cut where an engine was started, in the order of the log; itself where there was one start."""
    firsts = restarts.begins(reading.scanned.lines, reading.incidents)
    if len(firsts) < 2:
        return (reading,)
    return tuple(_part(reading, first, end) for first, end in zip(firsts, (*firsts[1:], sys.maxsize), strict=True))


def _part(reading: Reading, first: int, end: int) -> Reading:
    lines = tuple(line for line in reading.scanned.lines if first <= line.number < end)
    reached = phases.milestones(lines, reading.index.phases)
    kept = tuple(item for item in reading.incidents if first <= item.line < end)
    return replace(
        reading,
        scanned=replace(reading.scanned, lines=lines),
        incidents=kept,
        milestones=reached,
        facts={**reading.facts, "log.phase": _phase(reached, kept)},
    )


def _phase(reached: tuple[Milestone, ...], found: tuple[Incident, ...]) -> str:
    """The phase that a log ends in: by its progress lines, else by the frames of its first failure."""
    if reached:
        return reached[-1].phase
    return next((phase for item in found if (phase := phase_by_frames(item))), "")
