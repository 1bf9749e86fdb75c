"""The judgement of a running server: verdicts → ladder alive, ready, correct, good enough; and the warning ledger.

Pure: the verdicts come from `probes`, the open warnings from a Diagnosis. Nothing is called better than it was shown to
be: a skip is no pass, an open warning keeps a server at "ready", and a smoke suite cannot show "good enough".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from enum import StrEnum
from typing import Any

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from checks.after.probes.entry import Probe
from checks.after.probes.expect import AcceptedWarning
from checks.after.probes.registry import probes
from checks.catalog.entries import entry
from checks.vocabulary import Match, Outcome, Verdict

DEEPER = "deeper:"  # ids of what other harnesses found: `deeper:gsm8k`
NEEDED = frozenset({"accuracy", "speed"})  # kinds that must have passed, compared with something, for "good enough"


class Level(StrEnum):
    """How far a server has been proved."""

    NONE = "not alive"
    ALIVE = "alive"
    READY = "ready"
    CORRECT = "correct"
    GOOD_ENOUGH = "good enough"


class LedgerItem(Struct, frozen=True, kw_only=True):
    """One open item of the ledger and what became of it."""

    id: str
    title: str
    state: str  # open, cleared, accepted
    by: str = ""  # the probe that cleared it, or the reason it was accepted for
    clears: tuple[str, ...] = ()  # probes that would clear it
    evidence: str = ""


class Validation(Struct, frozen=True, kw_only=True):
    """The result of one validation, JSON-ready through `as_dict`."""

    suite: str
    outcome: Outcome
    level: Level
    summary: str
    verdicts: tuple[Verdict, ...]
    warnings: tuple[LedgerItem, ...] = ()
    samples: Mapping[str, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    model: str = ""
    engine: str = ""
    started: str = ""  # UTC, ISO 8601
    seconds: float = 0.0

    @property
    def open_warnings(self) -> tuple[LedgerItem, ...]:
        """What still stands."""
        return tuple(item for item in self.warnings if item.state == "open")


def with_verdicts(validation: Validation, more: Sequence[Verdict]) -> Validation:
    """The validation with further verdicts, one of the same id replaced; level, outcome and summary follow."""
    new = {item.id: item for item in more}
    kept = [new.pop(item.id, item) for item in validation.verdicts]
    verdicts = (*kept, *new.values())
    still_open = len(validation.open_warnings)
    level, outcome = level_of(verdicts, probes(), still_open), outcome_of(verdicts, still_open)
    summary = summary_of(level, outcome, verdicts, validation.warnings)
    return replace(validation, verdicts=verdicts, level=level, outcome=outcome, summary=summary)


def as_dict(validation: Validation) -> dict[str, Any]:
    """Plain JSON values; also the form in which a baseline is stored."""
    data: dict[str, Any] = to_builtins(validation)
    data["samples"] = {probe: {name: list(v) for name, v in parts.items()} for probe, parts in data["samples"].items()}
    return data


def level_of(verdicts: Sequence[Verdict], probes: Sequence[Probe], open_warnings: int) -> Level:
    """The highest level of which everything that was asked has passed, without a gap below it."""
    if not any(item.outcome is not Outcome.ERROR and not item.unreachable for item in verdicts):
        return Level.NONE
    level = Level.ALIVE
    kind = {probe.id: probe.level for probe in probes}
    kind |= {item.id: "good-enough" for item in verdicts if item.id.startswith(DEEPER)}
    proved = {probe.kind for probe in probes if outcomes_of(verdicts).get(probe.id) is Outcome.PASS}
    for name, reached in (("ready", Level.READY), ("correct", Level.CORRECT), ("good-enough", Level.GOOD_ENOUGH)):
        asked = [item for item in verdicts if kind.get(item.id) == name and item.outcome is not Outcome.SKIP]
        if not asked or any(item.outcome is not Outcome.PASS for item in asked):
            return level
        if name != "ready" and open_warnings:
            return level
        if name == "good-enough" and not proved >= NEEDED:
            return level
        level = reached
    return level


def outcomes_of(verdicts: Sequence[Verdict]) -> dict[str, Outcome]:
    """Probe id → outcome."""
    return {item.id: item.outcome for item in verdicts}


def outcome_of(verdicts: Sequence[Verdict], open_warnings: int) -> Outcome:
    """The worst of all: a failure, then a broken check, then what could not be decided."""
    found = {item.outcome for item in verdicts}
    for outcome in (Outcome.FAIL, Outcome.ERROR, Outcome.INCONCLUSIVE):
        if outcome in found:
            return outcome
    if open_warnings:
        return Outcome.INCONCLUSIVE
    return Outcome.PASS if Outcome.PASS in found else Outcome.SKIP


def settle(
    ledger: Sequence[Match],
    verdicts: Sequence[Verdict],
    probes: Sequence[Probe],
    accepted: Mapping[str, AcceptedWarning],
    today: date,
) -> tuple[LedgerItem, ...]:
    """Each warning of the log once: cleared by a passing probe, accepted by a person until a day, or open."""
    seen: dict[str, Match] = {}
    for item in ledger:
        seen.setdefault(item.id, item)
    outcomes = outcomes_of(verdicts)
    return tuple(_settle_one(item, outcomes, probes, accepted.get(item.id), today) for item in seen.values())


def summary_of(level: Level, outcome: Outcome, verdicts: Sequence[Verdict], warnings: Sequence[LedgerItem]) -> str:
    """One sentence: level, then what is in the way."""
    failed = [item for item in verdicts if item.outcome is Outcome.FAIL]
    open_ones = [item for item in warnings if item.state == "open"]
    parts = [str(level)]
    if failed:
        parts.append(f"{len(failed)} failed: {failed[0].id} ({failed[0].message})")
    for wanted, words in (
        (Outcome.ERROR, "checks broke"),
        (Outcome.INCONCLUSIVE, "inconclusive"),
        (Outcome.SKIP, "skipped"),
    ):
        names = [item.id for item in verdicts if item.outcome is wanted]
        if names:
            parts.append(f"{len(names)} {words}: {', '.join(names[:4])}" + (" …" if len(names) > 4 else ""))
    if open_ones:
        first = open_ones[0]
        cure = f", cleared by {' or '.join(first.clears)}" if first.clears else ""
        parts.append(f"with {len(open_ones)} open warning{'s' * (len(open_ones) > 1)}: {first.id}{cure}")
    if outcome is Outcome.PASS:
        parts.append(f"{sum(1 for item in verdicts if item.outcome is Outcome.PASS)} probes passed")
    return "; ".join(parts)


def _settle_one(
    item: Match, outcomes: Mapping[str, Outcome], probes: Sequence[Probe], accepted: AcceptedWarning | None, today: date
) -> LedgerItem:
    known = entry(item.id)
    named = [*(known.cleared_by if known else ()), *(probe.id for probe in probes if item.id in probe.clears)]
    clears = tuple(dict.fromkeys(named))
    shown = item.evidence[0].text if item.evidence else ""
    by = _cleared_by(clears, outcomes, {probe.id: probe.kind for probe in probes})
    reason = "" if by else _accepted(accepted, today)
    state = "cleared" if by else "accepted" if reason else "open"
    return LedgerItem(id=item.id, title=item.title, state=state, by=by or reason, clears=clears, evidence=shown)


def _cleared_by(clears: Sequence[str], outcomes: Mapping[str, Outcome], kinds: Mapping[str, str]) -> str:
    """The probes that cleared a warning. Those of one kind stand for each other; every kind must have passed.

    So a warning that may cost accuracy and speed is not cleared by the speed alone.
    """
    groups: dict[str, list[str]] = {}
    for name in clears:
        groups.setdefault(kinds.get(name, name), []).append(name)
    passed = []
    for group in groups.values():
        found = [name for name in group if outcomes.get(name) is Outcome.PASS]
        if not found or any(outcomes.get(name) is Outcome.FAIL for name in group):
            return ""
        passed += found
    return ", ".join(passed)


def _accepted(accepted: AcceptedWarning | None, today: date) -> str:
    """The reason for which a person accepts a warning, as long as the day that goes with it has not passed."""
    if accepted is None or not accepted.reason or accepted.until < today.isoformat():
        return ""
    return f"{accepted.reason} (until {accepted.until})"
