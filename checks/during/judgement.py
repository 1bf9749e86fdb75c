"""Judge one reading: verdict, cause, unexplained failures, as types. `diagnosis_wording` makes the sentences.

This module knows no message of the engine: `knowledge/` does. `root_cause` decides which hit names the cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from checks.catalog.conditions import Facts
from checks.during import matching
from checks.during.log.ending import Ending, read_ending
from checks.during.log.incidents import Incident
from checks.during.log.rejoined_tracebacks import rejoined
from checks.during.matching import Hit
from checks.during.reading import Reading
from checks.during.root_cause import by_incident, choose, decisive, settled, unexplained
from checks.during.unexplained import fingerprint, phase_of
from checks.vocabulary import LogVerdict, Role

_NO_TROUBLE = ("", "none", "ok", "healthy", "crash")


class Judgement(Struct, frozen=True, kw_only=True):
    """The judgement on one start of an engine."""

    reading: Reading
    verdict: LogVerdict
    ending: Ending
    hits: tuple[Hit, ...]
    cause: Hit | None
    rivals: tuple[str, ...]  # two causes that interleaved lines may mean; then `cause` is None
    open: tuple[Incident, ...]  # unexplained failures, earliest first
    overcome: tuple[Incident, ...]  # unexplained failures that the engine survived
    observed: str  # the misbehaviour that a caller observed, if the log shows no failure
    phase: str
    fingerprint: str  # equal for all runs that fail in the same way; empty without a failure
    consequence: Incident | None = None  # the failure, if the log shows only exceptions that followed from it

    @property
    def at(self) -> Incident | None:
        """The incident of the cause, else the earliest unexplained one, else the consequence; None without any."""
        if self.cause and self.cause.incident >= 0:
            return self.reading.incidents[self.cause.incident]
        return next(iter(self.open), self.consequence)


def judge(reading: Reading) -> Judgement:
    """Return the judgement on one start."""
    ending = read_ending(reading.scanned.lines, reading.incidents)
    hits = _hits(reading, reading.incidents, ending)
    cause, rivals = _agreed(reading, hits, ending)
    unsolved = () if cause else tuple(unexplained(reading.incidents, hits, ending))
    consequence = None if cause or rivals or unsolved or not ending.death else _consequence(reading, hits, ending)
    at = reading.incidents[cause.incident] if cause and cause.incident >= 0 else next(iter(unsolved), consequence)
    phase = phase_of(at, reading.milestones) if at else reading.last_phase
    observed = "" if cause or at or rivals else _observed_trouble(reading.facts)
    return Judgement(
        reading=reading,
        verdict=_verdict(reading, ending, cause is not None, bool(rivals or unsolved or observed)),
        ending=ending,
        hits=tuple(hits),
        cause=cause,
        rivals=rivals,
        open=unsolved,
        consequence=consequence,
        overcome=tuple(_overcome(reading, hits, ending)),
        observed=observed,
        phase=phase,
        fingerprint=fingerprint(at, phase) if at else f"observed:{observed}" if observed else "",
    )


def _verdict(reading: Reading, ending: Ending, explained: bool, unsolved: bool) -> LogVerdict:
    if explained:
        return LogVerdict.CAUSE
    if unsolved or ending.death or ending.stall:
        return LogVerdict.UNKNOWN
    if reading.is_foreign:
        return LogVerdict.NOT_A_LOG
    if ending.stop:
        return LogVerdict.STOPPED
    answered = ending.alive or reading.last_phase in ("serving", "stopping")
    return LogVerdict.HEALTHY if answered else LogVerdict.STARTING


def _hits(reading: Reading, incidents: Sequence[Incident], ending: Ending) -> list[Hit]:
    return [settled(hit, incidents, ending) for hit in matching.find(incidents, reading.index, reading.facts)]


def _observed_trouble(facts: Facts) -> str:
    """Return misbehaviour that a caller observed or the engine reports about its output: it rules out `healthy`."""
    kind = str(facts.get("observed.kind") or "")
    return "" if kind.lower() in _NO_TROUBLE else kind


def _agreed(reading: Reading, hits: Sequence[Hit], ending: Ending) -> tuple[Hit | None, tuple[str, ...]]:
    """Return the cause, or two rivals.

    The rank of interleaved lines is a guess. The cause holds unless these lines, joined into one incident, name a cause
    that the lines of no single rank name.
    """
    cause = choose(reading.incidents, hits, ending)
    if cause is None or cause.incident < 0 or not reading.incidents[cause.incident].interleaved:
        return cause, ()
    joined = rejoined(reading.incidents)
    joined_cause = choose(joined, _hits(reading, joined, ending), ending)
    named = {best.rule.entry for rivals in by_incident(hits).values() if (best := decisive(rivals))}
    if joined_cause is None or joined_cause.rule.entry in named:
        return cause, ()
    return None, (cause.rule.entry, joined_cause.rule.entry)


def _consequence(reading: Reading, hits: Sequence[Hit], ending: Ending) -> Incident | None:
    """Return the earliest exception that only symptoms explain, preferably one with frames; None if there is none."""
    numbers = sorted({hit.incident for hit in hits if hit.rule.role is Role.SYMPTOM and hit.incident >= 0})
    failed = [reading.incidents[number] for number in numbers]
    raised = [item for item in failed if item.last and item.last.type and not ending.after_stop(item)]
    return next((item for item in raised if item.frames), next(iter(raised), None))


def _overcome(reading: Reading, hits: Sequence[Hit], ending: Ending) -> Iterator[Incident]:
    explained = {hit.incident for hit in hits}
    for number, incident in enumerate(reading.incidents):
        if incident.kind in ("traceback", "native") and number not in explained and ending.overcome(incident):
            yield incident
