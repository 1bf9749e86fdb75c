"""Judge a running server: verdicts → a level (alive, ready, correct, good enough), and settle the warning ledger.

Pure: the verdicts come from `probes`, the warnings from a Diagnosis. A level is never higher than the evidence: a skip
is not a pass, an unresolved warning keeps a server at "ready", and a smoke suite cannot show "good enough".
"""

from __future__ import annotations

import re
from collections import Counter
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

DEEPER = "deeper:"  # prefix of the verdict ids of external harnesses: `deeper:gsm8k`
NEEDED = frozenset({"accuracy", "speed"})  # kinds that must pass against a limit or a baseline for "good enough"


class Level(StrEnum):
    """The level that a server has been shown to reach."""

    NONE = "not alive"
    ALIVE = "alive"
    READY = "ready"
    CORRECT = "correct"
    GOOD_ENOUGH = "good enough"


class LedgerItem(Struct, frozen=True, kw_only=True):
    """One warning of the ledger and how it was settled."""

    id: str
    title: str
    state: str  # open, cleared, accepted
    by: str = ""  # the probes that cleared it, or the reason why a person accepted it
    clears: tuple[str, ...] = ()  # probes that would clear it
    evidence: str = ""


class Validation(Struct, frozen=True, kw_only=True):
    """The result of one validation; `as_dict` turns it into JSON values."""

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
        """The unresolved warnings: neither cleared by a probe nor accepted."""
        return tuple(item for item in self.warnings if item.state == "open")


def with_verdicts(validation: Validation, added: Sequence[Verdict]) -> Validation:
    """Return the validation with `added` verdicts, replacing those of the same id; level, outcome, summary follow."""
    new = {item.id: item for item in added}
    kept = [new.pop(item.id, item) for item in validation.verdicts]
    verdicts = (*kept, *new.values())
    unresolved = len(validation.open_warnings)
    level, outcome = level_of(verdicts, probes(), unresolved), outcome_of(verdicts, unresolved)
    summary = summary_of(level, outcome, verdicts, validation.warnings)
    return replace(validation, verdicts=verdicts, level=level, outcome=outcome, summary=summary)


def as_dict(validation: Validation) -> dict[str, Any]:
    """Return the validation as plain JSON values; a baseline is stored in the same form."""
    data: dict[str, Any] = to_builtins(validation)
    data["samples"] = {probe: {name: list(v) for name, v in parts.items()} for probe, parts in data["samples"].items()}
    return data


def level_of(verdicts: Sequence[Verdict], probes: Sequence[Probe], open_warnings: int) -> Level:
    """Return the highest level at which every probe that ran has passed, with no gap in the levels below it."""
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
    """Return a mapping of probe id to outcome."""
    return {item.id: item.outcome for item in verdicts}


def outcome_of(verdicts: Sequence[Verdict], open_warnings: int) -> Outcome:
    """Return the worst outcome: FAIL, then ERROR, then INCONCLUSIVE, which an unresolved warning causes too."""
    outcomes = {item.outcome for item in verdicts}
    for outcome in (Outcome.FAIL, Outcome.ERROR, Outcome.INCONCLUSIVE):
        if outcome in outcomes:
            return outcome
    if open_warnings:
        return Outcome.INCONCLUSIVE
    return Outcome.PASS if Outcome.PASS in outcomes else Outcome.SKIP


def settle(
    ledger: Sequence[Match],
    verdicts: Sequence[Verdict],
    probes: Sequence[Probe],
    accepted: Mapping[str, AcceptedWarning],
    today: date,
) -> tuple[LedgerItem, ...]:
    """Return each warning of the log once: cleared by a passing probe, accepted by a person until a day, or open."""
    warnings: dict[str, Match] = {}
    for item in ledger:
        warnings.setdefault(item.id, item)
    outcomes = outcomes_of(verdicts)
    return tuple(_settle_one(item, outcomes, probes, accepted.get(item.id), today) for item in warnings.values())


def summary_of(level: Level, outcome: Outcome, verdicts: Sequence[Verdict], warnings: Sequence[LedgerItem]) -> str:
    """Return one sentence: the level, then what prevents a higher one."""
    failed = [item for item in verdicts if item.outcome is Outcome.FAIL]
    unresolved = [item for item in warnings if item.state == "open"]
    parts = [str(level)]
    if failed:
        parts.append(_failures(failed))
    for listed, words in (
        (Outcome.ERROR, "probes could not run"),
        (Outcome.INCONCLUSIVE, "inconclusive"),
        (Outcome.SKIP, "skipped"),
    ):
        names = [item.id for item in verdicts if item.outcome is listed]
        if names:
            parts.append(f"{len(names)} {words}: {', '.join(names[:4])}" + (" …" if len(names) > 4 else ""))
    if unresolved:
        first = unresolved[0]
        cure = f", cleared by {' or '.join(first.clears)}" if first.clears else ""
        parts.append(f"{len(unresolved)} unresolved warning{'s' * (len(unresolved) > 1)}: {first.id}{cure}")
    if outcome is Outcome.PASS:
        parts.append(f"{sum(1 for item in verdicts if item.outcome is Outcome.PASS)} probes passed")
    return "; ".join(parts)


def _failures(failed: Sequence[Verdict]) -> str:
    """Return the failures in one clause: one reason that most of them share, else the first one."""
    reasons = [item.message.partition("failed: ")[2] or item.message for item in failed]
    kinds = Counter(re.split(r"[;:]", reason)[0] for reason in reasons)  # `HTTP 500` of `HTTP 500: out of memory`
    kind, count = kinds.most_common(1)[0]
    if count > 2:
        fullest = max((reason for reason in reasons if reason.startswith(kind)), key=len)
        return f"{len(failed)} failed, {count} of them for one reason: {fullest}"
    return f"{len(failed)} failed: {failed[0].id} ({failed[0].message})"


def _settle_one(
    item: Match, outcomes: Mapping[str, Outcome], probes: Sequence[Probe], accepted: AcceptedWarning | None, today: date
) -> LedgerItem:
    known = entry(item.id)
    clearing = [*(known.cleared_by if known else ()), *(probe.id for probe in probes if item.id in probe.clears)]
    clears = tuple(dict.fromkeys(clearing))
    evidence = item.evidence[0].text if item.evidence else ""
    by = _cleared_by(clears, outcomes, {probe.id: probe.kind for probe in probes})
    reason = "" if by else _accepted(accepted, today)
    state = "cleared" if by else "accepted" if reason else "open"
    return LedgerItem(id=item.id, title=item.title, state=state, by=by or reason, clears=clears, evidence=evidence)


def _cleared_by(clears: Sequence[str], outcomes: Mapping[str, Outcome], kinds: Mapping[str, str]) -> str:
    """Return the probes that cleared a warning. Within one kind, one passing probe is enough; every kind must pass.

    A warning that may cost accuracy and speed is therefore not cleared by the speed probe alone.
    """
    groups: dict[str, list[str]] = {}
    for name in clears:
        groups.setdefault(kinds.get(name, name), []).append(name)
    cleared_by = []
    for group in groups.values():
        passed = [name for name in group if outcomes.get(name) is Outcome.PASS]
        if not passed or any(outcomes.get(name) is Outcome.FAIL for name in group):
            return ""
        cleared_by += passed
    return ", ".join(cleared_by)


def _accepted(accepted: AcceptedWarning | None, today: date) -> str:
    """Return the reason why a person accepts a warning; empty once its `until` day has passed."""
    if accepted is None or not accepted.reason or accepted.until < today.isoformat():
        return ""
    return f"{accepted.reason} (until {accepted.until})"
