"""A reading → one Judgement: what it came to, in types alone. The sentences for it are made in `diagnosis_wording`.

Single messages mean nothing here; those are in `knowledge/`. Which hit names the cause is decided in `root_cause`.
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
from checks.vocabulary import LogVerdict

_NO_TROUBLE = ("", "none", "ok", "healthy", "crash")


class Judgement(Struct, frozen=True, kw_only=True):
    """What one start of an engine came to."""

    reading: Reading
    verdict: LogVerdict
    ending: Ending
    hits: tuple[Hit, ...]
    cause: Hit | None
    rivals: tuple[str, ...]  # two causes that lines written over each other could mean; then `cause` is None
    open: tuple[Incident, ...]  # failures that need an explanation and have none, earliest first
    overcome: tuple[Incident, ...]  # failures that nothing explains and the engine survived
    observed: str  # the trouble that a caller saw where the log shows none
    phase: str
    fingerprint: str  # the same for every run that fails alike; empty without a failure

    @property
    def at(self) -> Incident | None:
        """The incident of the cause, else the earliest open one."""
        if self.cause and self.cause.incident >= 0:
            return self.reading.incidents[self.cause.incident]
        return next(iter(self.open), None)


def judge(reading: Reading) -> Judgement:
    """The judgement on one start."""
    ending = read_ending(reading.scanned.lines, reading.incidents)
    hits = _hits(reading, reading.incidents, ending)
    cause, rivals = _agreed(reading, hits, ending)
    unsolved = () if cause else tuple(unexplained(reading.incidents, hits, ending))
    at = reading.incidents[cause.incident] if cause and cause.incident >= 0 else next(iter(unsolved), None)
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
    """What a caller saw go wrong, or the engine reports of its own output: such a server is not called healthy."""
    kind = str(facts.get("observed.kind") or "")
    return "" if kind.lower() in _NO_TROUBLE else kind


def _agreed(reading: Reading, hits: Sequence[Hit], ending: Ending) -> tuple[Hit | None, tuple[str, ...]]:
    """The cause, or two rivals.

    Where ranks wrote over each other, lines were attributed by guess. The cause stands unless those lines, joined into
    one incident, name a cause that no rank's own lines name.
    """
    cause = choose(reading.incidents, hits, ending)
    if cause is None or cause.incident < 0 or not reading.incidents[cause.incident].interleaved:
        return cause, ()
    together = rejoined(reading.incidents)
    other = choose(together, _hits(reading, together, ending), ending)
    named = {best.rule.entry for rivals in by_incident(hits).values() if (best := decisive(rivals))}
    if other is None or other.rule.entry in named:
        return cause, ()
    return None, (cause.rule.entry, other.rule.entry)


def _overcome(reading: Reading, hits: Sequence[Hit], ending: Ending) -> Iterator[Incident]:
    explained = {hit.incident for hit in hits}
    for number, incident in enumerate(reading.incidents):
        if incident.kind == "traceback" and number not in explained and ending.overcome(incident):
            yield incident
