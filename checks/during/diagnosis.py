"""Hits on a log → one Diagnosis: the earliest cause, what is only a consequence, what means nothing, what stays open.

Single messages mean nothing here; that is in `knowledge/`. Unknown is an answer of its own (`unknown`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from checks.catalog.conditions import Facts
from checks.during import matching
from checks.during.log import phases, restarts
from checks.during.log.ending import Ending, read_ending
from checks.during.log.incidents import Incident
from checks.during.log.lines import Line
from checks.during.log.phases import Milestone
from checks.during.log.rejoined_tracebacks import is_torn, rejoined
from checks.during.log.scan import Scanned
from checks.during.matching import Hit
from checks.during.root_cause import by_incident, choose, decisive, settled, unexplained
from checks.during.signature_index import Index
from checks.during.unexplained import fingerprint, phase_of, refusal, summary
from checks.engine.remedies import fill, fitting, for_draft
from checks.vocabulary import Diagnosis, Match, Remedy, Role, parse_version

OBSERVED = "observed:"
"""Begins the fingerprint of what was seen and has left no trace in the log."""
_NO_TROUBLE = ("", "none", "ok", "healthy", "crash")

_DRAFT = "/sglang/srt/speculative/"  # a frame of the draft model's worker

NO_LOG = "nothing in it looks like the log of an engine"


class Reading(Struct, frozen=True, kw_only=True):
    """Everything read from one log before judging."""

    scanned: Scanned
    incidents: tuple[Incident, ...]
    milestones: tuple[Milestone, ...]
    facts: Facts
    index: Index


def diagnose(reading: Reading) -> Diagnosis:
    """The judgement on one log; where an engine was started several times in it, on the last start."""
    *earlier, last = _starts(reading)
    found = _judge(last)
    if not earlier:
        return found
    return replace(found, notes=(_starts_note(earlier, last, found), *found.notes))


def _judge(reading: Reading) -> Diagnosis:
    ending = read_ending(reading.scanned.lines, reading.incidents)
    hits = _hits(reading, reading.incidents, ending)
    cause, doubt = _agreed(reading, hits, ending)
    open_ones = [] if cause else list(unexplained(reading.incidents, hits, ending))
    at = reading.incidents[cause.incident] if cause and cause.incident >= 0 else next(iter(open_ones), None)
    phase = phase_of(at, reading.milestones) if at else _last_phase(reading)
    match = _match(cause) if cause else None
    said, why = refusal(at, reading.facts.get("engine.version")) if at and not cause else ("", "")
    seen = "" if cause or at or doubt else _observed_trouble(reading.facts)
    return Diagnosis(
        cause=match,
        sentence=match.title if match else said or next(iter(doubt), seen) or _sentence(reading, open_ones, ending),
        why=fill(reading.index.advice(cause.rule.entry).why, cause.captures) if cause else why,
        healthy=not (cause or doubt or open_ones or seen or ending.death or ending.stall),
        remedies=_remedies(reading, cause) if cause else (),
        symptoms=_matches(hits, Role.SYMPTOM),
        ledger=_matches(hits, Role.LEDGER),
        dismissed=_matches(hits, Role.BENIGN),
        fingerprint=fingerprint(at, phase) if at else f"{OBSERVED}{reading.facts['observed.kind']}" if seen else "",
        phase=phase,
        engine=reading.facts.get("engine.version"),
        notes=(*_notes(reading, at), *_overcome(reading, hits, ending)),
    )


def first_open(reading: Reading) -> Incident | None:
    """The earliest failure of the last start that nothing explains; None when it is explained, or nothing failed."""
    reading = _starts(reading)[-1]
    ending = read_ending(reading.scanned.lines, reading.incidents)
    hits = _hits(reading, reading.incidents, ending)
    if choose(reading.incidents, hits, ending):
        return None
    return next(unexplained(reading.incidents, hits, ending), None)


def _hits(reading: Reading, incidents: Sequence[Incident], ending: Ending) -> list[Hit]:
    found = matching.find(incidents, reading.index, reading.facts)
    return [settled(hit, incidents, ending) for hit in found]


def _observed_trouble(facts: Facts) -> str:
    """What a caller saw go wrong, or the engine says of its own output: such a server is not called healthy."""
    kind = str(facts.get("observed.kind") or "")
    return "" if kind.lower() in _NO_TROUBLE else f"unknown: {kind} was observed, and nothing here says why"


def _starts(reading: Reading) -> tuple[Reading, ...]:
    """The log cut where an engine was started."""
    firsts = restarts.begins(reading.scanned.lines, reading.incidents)
    if len(firsts) < 2:
        return (reading,)
    return tuple(_part(reading, first, end) for first, end in zip(firsts, (*firsts[1:], sys.maxsize), strict=True))


def _part(reading: Reading, first: int, end: int) -> Reading:
    lines = tuple(line for line in reading.scanned.lines if first <= line.number < end)
    found = phases.milestones(lines, reading.index.phases)
    return replace(
        reading,
        scanned=replace(reading.scanned, lines=lines),
        incidents=tuple(item for item in reading.incidents if first <= item.line < end),
        milestones=found,
        facts={**reading.facts, "log.phase": found[-1].phase if found else ""},
    )


def _starts_note(earlier: Sequence[Reading], last: Reading, found: Diagnosis) -> str:
    firsts = [part.scanned.lines[0].number for part in (*earlier, last)]
    ends = [_end_of(_judge(part)) for part in earlier[-restarts.MOST_SHOWN :]]
    return restarts.note(firsts, [*ends, _end_of(found)], complete=not last.scanned.dropped_regions)


def _end_of(found: Diagnosis) -> str:
    return f"`{found.cause.id}`" if found.cause else "no failure" if found.healthy else found.fingerprint or "unknown"


def _agreed(reading: Reading, hits: Sequence[Hit], ending: Ending) -> tuple[Hit | None, tuple[str, ...]]:
    """The cause. Where ranks wrote over each other: unless their lines together name one that no rank's own do."""
    cause = choose(reading.incidents, hits, ending)
    if cause is None or cause.incident < 0 or not is_torn(reading.incidents[cause.incident]):
        return cause, ()
    together = rejoined(reading.incidents)
    other = choose(together, _hits(reading, together, ending), ending)
    named = {best.rule.entry for rivals in by_incident(hits).values() if (best := decisive(rivals))}
    if other is None or other.rule.entry in named:
        return cause, ()
    return None, (f"unknown: ranks wrote over each other; it may be `{cause.rule.entry}` or `{other.rule.entry}`",)


def _remedies(reading: Reading, cause: Hit) -> tuple[Remedy, ...]:
    found = fitting(reading.index.advice(cause.rule.entry).remedies, reading.facts, cause.captures)
    if cause.incident < 0 or not any(_DRAFT in line.text for line in reading.incidents[cause.incident].lines):
        return found
    return tuple(map(for_draft, found))


def _overcome(reading: Reading, hits: Iterable[Hit], ending: Ending) -> Iterator[str]:
    """What failed without stopping the engine, and means nothing that is known."""
    explained = {hit.incident for hit in hits}
    items = [
        incident
        for number, incident in enumerate(reading.incidents)
        if incident.kind == "traceback" and number not in explained and ending.overcome(incident)
    ]
    if items:
        more = f" and {len(items) - 1} more" if len(items) > 1 else ""
        yield f"the engine went on after {summary(items[0])}{more}"


def _last_phase(reading: Reading) -> str:
    return reading.milestones[-1].phase if reading.milestones else ""


def _match(hit: Hit) -> Match:
    title = fill(hit.rule.title, hit.captures)
    return Match(id=hit.rule.entry, role=hit.rule.role, title=title, evidence=hit.evidence, captures=hit.captures)


def _matches(hits: Iterable[Hit], role: Role) -> tuple[Match, ...]:
    """One match per id, with the evidence of its first hit."""
    first: dict[str, Hit] = {}
    for hit in matching.by_role(hits, role):
        first.setdefault(hit.rule.entry, hit)
    return tuple(_match(hit) for hit in first.values())


def _sentence(reading: Reading, open_ones: Sequence[Incident], ending: Ending) -> str:
    phase = _last_phase(reading) or "import"
    if not reading.scanned.total_bytes:
        return "the log is empty"
    if _is_foreign(reading) and not (open_ones or ending.death or ending.stall):
        return "nothing failed, as far as this file tells"
    if open_ones:
        return f"unknown: {summary(open_ones[0])}"
    if ending.death:
        return f"unknown: the engine went down in phase `{phase}` (line {ending.death}) and the log does not say why"
    if ending.stall and ending.stop:
        return f"unknown: the engine did not answer any more (line {ending.stall}) when it was stopped"
    if ending.stall:
        return f"unknown: the engine stopped answering (line {ending.stall}) and did not go down{_moved(ending.last)}"
    if ending.stop:
        return f"stopped on request (line {ending.stop}); nothing failed before"
    return (
        "serving; nothing failed"
        if phase == "serving"
        else f"no failure so far; in phase `{phase}`{_moved(ending.last)}"
    )


def _is_foreign(reading: Reading) -> bool:
    """Whether no line is like those of an engine."""
    return not reading.milestones and not any(line.headed for line in reading.scanned.lines)


def _moved(last: Line | None) -> str:
    if last is None:
        return ""
    return f"; last moved: line {last.number}{' at ' + last.time if last.time else ''}: {last.text.strip()[:120]}"


def _notes(reading: Reading, incident: Incident | None) -> Iterator[str]:
    """What the judgement could not rest on."""
    if _is_foreign(reading):
        yield NO_LOG
    if incident:
        yield from incident.notes
    first = reading.milestones[0].phase if reading.milestones else ""
    if first not in ("", "import", "args", "distributed"):
        yield f"the log starts in phase `{first}`: what the engine said before, its arguments among it, is missing"
    version = str(reading.facts.get("engine.version") or "")
    if incident and parse_version(version) is None:
        known = f"`{version}` is no release number" if version else "the log does not name the engine's release"
        yield f"{known}: remedies are spelled for the newest (--engine says which)"
    if reading.scanned.dropped_regions:
        yield f"{reading.scanned.dropped_regions} repeated or middle parts of this noisy log were not looked at"
