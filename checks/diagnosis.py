"""Hits on a log → one Diagnosis: the earliest cause, what is only a consequence, what means nothing, what stays open.

Single messages mean nothing here; that is in `knowledge/`. Unknown is an answer of its own (`unknown`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from checks import endings, phases, signatures, starts
from checks.endings import INTERRUPTS, Ending
from checks.loglines import Line
from checks.match import Facts
from checks.model import Diagnosis, Match, Remedy, Role, parse_version
from checks.phases import Milestone
from checks.remedies import fill, fitting, for_draft
from checks.scan import Scanned
from checks.signature_index import Index
from checks.signatures import Hit
from checks.torn import is_torn, rejoined
from checks.tracebacks import Incident
from checks.unknown import fingerprint, phase_of, refusal, summary

DECISIVE = 20
"""Weight of patterns that leave no doubt."""
USUAL = 10
"""Weight of patterns that say what they say; below it they only hint."""
NEAR_LINES = 60
"""How far from a crash an ordinary line may stand to be taken for its cause."""

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
    hits = signatures.find(reading.incidents, reading.index, reading.facts)
    ending = endings.read(reading.scanned.lines, reading.incidents)
    hits = [_settled(hit, reading.incidents, ending) for hit in hits]
    cause, doubt = _agreed(reading, hits, ending)
    open_ones = [] if cause else list(_unexplained(reading.incidents, hits, ending))
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
    hits = signatures.find(reading.incidents, reading.index, reading.facts)
    ending = endings.read(reading.scanned.lines, reading.incidents)
    if choose(reading.incidents, hits, ending):
        return None
    return next(_unexplained(reading.incidents, hits, ending), None)


def choose(incidents: Sequence[Incident], hits: Iterable[Hit], ending: Ending) -> Hit | None:
    """The hit that names the cause: on the earliest incident, there the most decisive one. None to abstain.

    A generic pattern (weight 0) speaks only when nothing better is found. A line that is no failure by itself names
    the cause of a crash only when it is more decisive than what the crash itself says, or stands close above it.
    """
    hits = list(hits)
    placed = [
        best
        for number, rivals in _by_incident(hits).items()
        if number >= 0 and not _is_past(incidents[number], ending) and (best := _decisive(rivals))
    ]
    crashes = [hit for hit in placed if incidents[hit.incident].kind != "line"]
    crash = _earliest(crashes, incidents)
    open_at = next((item.line for item in _unexplained(incidents, hits, ending)), 0)
    lines = [hit for hit in placed if hit not in crashes and _weighs(hit, crash, incidents, open_at)]
    chosen = _surest(lines, incidents) or crash
    return chosen or _observed([hit for hit in hits if hit.incident < 0 and hit.rule.role is Role.CAUSE])


def _observed_trouble(facts: Facts) -> str:
    """What a caller saw go wrong, or the engine says of its own output: such a server is not called healthy."""
    kind = str(facts.get("observed.kind") or "")
    return "" if kind.lower() in _NO_TROUBLE else f"unknown: {kind} was observed, and nothing here says why"


def _settled(hit: Hit, incidents: Sequence[Incident], ending: Ending) -> Hit:
    """What only fails a request, or nothing, is no cause once the engine went on."""
    if not hit.rule.fails or hit.incident < 0 or not ending.survived(incidents[hit.incident]):
        return hit
    return replace(hit, rule=replace(hit.rule, role=Role.BENIGN))


def _starts(reading: Reading) -> tuple[Reading, ...]:
    """The log cut where an engine was started."""
    firsts = starts.begins(reading.scanned.lines, reading.incidents)
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
    ends = [_end_of(_judge(part)) for part in earlier[-starts.MOST_SHOWN :]]
    return starts.note(firsts, [*ends, _end_of(found)], complete=not last.scanned.dropped_regions)


def _end_of(found: Diagnosis) -> str:
    return f"`{found.cause.id}`" if found.cause else "no failure" if found.healthy else found.fingerprint or "unknown"


def _agreed(reading: Reading, hits: Sequence[Hit], ending: Ending) -> tuple[Hit | None, tuple[str, ...]]:
    """The cause. Where ranks wrote over each other: unless their lines together name one that no rank's own do."""
    cause = choose(reading.incidents, hits, ending)
    if cause is None or cause.incident < 0 or not is_torn(reading.incidents[cause.incident]):
        return cause, ()
    together = rejoined(reading.incidents)
    other = choose(together, signatures.find(together, reading.index, reading.facts), ending)
    named = {best.rule.entry for rivals in _by_incident(hits).values() if (best := _decisive(rivals))}
    if other is None or other.rule.entry in named:
        return cause, ()
    return None, (f"unknown: ranks wrote over each other; it may be `{cause.rule.entry}` or `{other.rule.entry}`",)


def _earliest(hits: Sequence[Hit], incidents: Sequence[Incident]) -> Hit | None:
    better = [hit for hit in hits if hit.rule.weight > 0] or hits
    return min(better, key=lambda hit: _when(incidents[hit.incident]), default=None)


def _surest(hits: Sequence[Hit], incidents: Sequence[Incident]) -> Hit | None:
    """The earliest line; a weak one (a process was killed) gives way to a decisive one further down (by whom)."""
    first = _earliest(hits, incidents)
    if first is None or first.rule.weight >= USUAL:
        return first
    return _earliest([hit for hit in hits if hit.rule.weight >= DECISIVE], incidents) or first


def _weighs(hit: Hit, crash: Hit | None, incidents: Sequence[Incident], open_at: int) -> bool:
    """Whether a cause seen on a single line stands against a crash that is explained, or is open, otherwise."""
    if hit.rule.weight >= DECISIVE:
        return crash is None or crash.rule.weight < DECISIVE
    if crash:
        return hit.rule.weight > crash.rule.weight
    return not open_at or abs(open_at - incidents[hit.incident].line) <= NEAR_LINES


def _is_past(incident: Incident, ending: Ending) -> bool:
    """Whether it only followed a request to stop, or a check of health that failed and then did not."""
    return ending.after_stop(incident) or (incident.kind == "line" and ending.overcome(incident))


def _by_incident(hits: Iterable[Hit]) -> dict[int, list[Hit]]:
    found: dict[int, list[Hit]] = {}
    for hit in hits:
        found.setdefault(hit.incident, []).append(hit)
    return found


def _decisive(rivals: Sequence[Hit]) -> Hit | None:
    """The cause among the hits on one incident; None where it is benign, or a consequence that is known better."""
    best = max((hit for hit in rivals if hit.rule.role is Role.CAUSE), key=lambda hit: hit.decisiveness, default=None)
    if best is None:
        return None
    benign = max((hit.rule.weight for hit in rivals if hit.rule.role is Role.BENIGN), default=-1)
    symptom = max((hit.rule.weight for hit in rivals if hit.rule.role is Role.SYMPTOM), default=-1)
    return None if benign >= best.rule.weight or symptom > best.rule.weight else best


def _observed(hits: Sequence[Hit]) -> Hit | None:
    """Among causes that rest on facts alone: the heaviest, then most specific; two that are equal cancel out."""

    def rank(hit: Hit) -> tuple[int, int]:
        condition = hit.rule.condition
        return hit.rule.weight, len(condition.names) if condition else 0

    best = max(hits, key=rank, default=None)
    if best is None or any(rank(hit) == rank(best) and hit.rule.entry != best.rule.entry for hit in hits):
        return None
    return best


def _when(incident: Incident) -> tuple[str, int]:
    return incident.time.replace("T", " ").replace(",", "."), incident.line


def _unexplained(incidents: Sequence[Incident], hits: Iterable[Hit], ending: Ending) -> Iterator[Incident]:
    """Incidents that would need an explanation and have none, earliest first."""
    explained = {hit.incident for hit in hits if hit.rule.role is not Role.LEDGER}
    for number, incident in sorted(enumerate(incidents), key=lambda item: _when(item[1])):
        interrupted = incident.last and incident.last.type.rsplit(".", 1)[-1] in INTERRUPTS
        if incident.kind == "line" or number in explained or interrupted or ending.after_stop(incident):
            continue
        if ending.overcome(incident):
            continue
        yield incident


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
    for hit in signatures.by_role(hits, role):
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
