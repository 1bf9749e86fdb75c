"""Build a Reading, everything that is read from a log before the judgement: kept lines, incidents, phases, facts.

This module also cuts a log of several starts, so that `judgement` can judge each start separately.
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
from checks.during.log_facts import merge, stated_flags
from checks.during.signature_index import Index
from checks.during.unexplained import phase_by_frames


class Reading(Struct, frozen=True, kw_only=True):
    """One log, or one start of a log that contains several."""

    scanned: Scanned
    incidents: tuple[Incident, ...]
    milestones: tuple[Milestone, ...]
    facts: Facts
    index: Index
    stated: frozenset[str] = frozenset()  # the options that the caller knows to be in the launch: `flag.tp-size`
    arguments: Mapping[str, Any] = {}  # the server args that the log reports, by Python name

    @property
    def last_phase(self) -> str:
        """The phase that the engine reached; empty if no line shows one."""
        return self.milestones[-1].phase if self.milestones else ""

    @property
    def is_foreign(self) -> bool:
        """Whether no line looks like a line of an SGLang log."""
        return not self.milestones and not any(line.headed for line in self.scanned.lines)


def read(scanned: Scanned, index: Index, known: Mapping[str, Any] | None = None, engine: str = "") -> Reading:
    """Return the reading of one log.

    `known` is what a caller knows about the launch, in the form of a facts file: `{engine_version, gpu, model, flags,
    env, packages, observed, host}`, all optional. It takes precedence over the facts in the log. `engine` is a release
    that takes precedence over both.
    """
    reached = phases.milestones(scanned.lines, index.phases)
    launch = server_args.read(scanned.lines)
    all_incidents = incidents(scanned.lines)
    facts = merge(launch, known or {}, engine, _phase(reached, all_incidents))
    return Reading(
        scanned=scanned,
        incidents=all_incidents,
        milestones=reached,
        facts=facts,
        index=index,
        arguments=launch.arguments,
        stated=stated_flags(known or {}, str(facts.get("engine.version") or "")),
    )


def starts_of(reading: Reading) -> tuple[Reading, ...]:
    """Return one reading for each start of the engine, in the order of the log."""
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


def _phase(reached: tuple[Milestone, ...], all_incidents: tuple[Incident, ...]) -> str:
    """Return the last phase of a log: by its milestones, else by the frames of its first failure."""
    if reached:
        return reached[-1].phase
    return next((phase for item in all_incidents if (phase := phase_by_frames(item))), "")
