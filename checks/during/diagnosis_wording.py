"""Word a Judgement: this module writes every sentence of a Diagnosis, and no code decides anything by a sentence.

`judgement` decides; remedies and reasons come from the knowledge, with the flag names of the log's release.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from checks.during import matching
from checks.during.cause_remedies import fitted_remedies
from checks.during.judgement import Judgement
from checks.during.log.incident_builder import FATAL
from checks.during.log.incidents import Incident, Raised
from checks.during.log.lines import Line
from checks.during.log.restarts import MOST_SHOWN
from checks.during.matching import Hit
from checks.during.reply_text import reply_text
from checks.during.request_notes import request_notes
from checks.during.unexplained import engine_frame, engine_path, raise_site
from checks.engine.remedies import fill
from checks.vocabulary import Diagnosis, LogVerdict, Match, Role, parse_version

if TYPE_CHECKING:
    from checks.engine.raise_sites import RaiseSite
    from checks.engine.release_lines import Narrowed

FOREIGN = "this does not look like an SGLang log"
INTERLEAVED = "the output of several ranks is interleaved: the rank of some lines is a guess"
HEADLESS = "the start of this traceback is missing"
TAILLESS = "the end of this traceback is missing: the exception itself is not in the log"
_MOST_CHARS = 300  # longest part of a message that is quoted
_WARMUP = ("_execute_server_warmup", "_wait_and_warmup")  # entrypoints/http_server.py


def word(judged: Judgement, *, firsts: Sequence[int] = (), before: Sequence[Judgement] = ()) -> Diagnosis:
    """Return the diagnosis of a judged start.

    `firsts`: number of the first line of each start if the log contains several; `before`: the judgements on the
    starts directly before the judged one.
    """
    cause, facts = judged.cause, judged.reading.facts
    site = None
    if judged.open and not cause:
        site = raise_site(judged.open[0], facts.get("engine.version"))
    match = _match(cause) if cause else None
    advice = judged.reading.index.advice(cause.rule.entry) if cause else None
    why = fill(advice.why, cause.captures) if cause and advice else _reason(site) if site else ""
    return Diagnosis(
        verdict=judged.verdict,
        cause=match,
        sentence=match.title if match else _sentence(judged, site),
        why=why,
        remedies=fitted_remedies(judged, cause, advice.remedies) if cause and advice else (),
        symptoms=_matches(judged.hits, Role.SYMPTOM),
        ledger=_matches(judged.hits, Role.LEDGER),
        dismissed=_matches(judged.hits, Role.BENIGN),
        observed=judged.observed,
        fingerprint=judged.fingerprint,
        phase=judged.phase,
        engine=facts.get("engine.version"),
        notes=(*_starts_note(judged, firsts, before), *_notes(judged), *_overcome_note(judged.overcome)),
    )


def headline(diagnosis: Diagnosis) -> str:
    """Return a diagnosis on one line: the id of the cause, or `none` or `unknown`, then the sentence."""
    match diagnosis.verdict:
        case LogVerdict.CAUSE if diagnosis.cause:
            return f"{diagnosis.cause.id}: {diagnosis.sentence}"
        case LogVerdict.HEALTHY | LogVerdict.STOPPED | LogVerdict.STARTING:
            return f"none: {diagnosis.sentence}"
        case _:
            return f"unknown: {diagnosis.sentence}"


def summary(incident: Incident) -> str:
    """Return the exception with the first paragraph of its message, or the line itself; both with the line number."""
    part = incident.telling
    if part and part.type:
        return f"{part.type}{_message(incident, part)} (line {incident.line})"
    if incident.kind == "fatal":
        return f"{_fatal(incident)} (line {incident.line})"
    shown = incident.lines if incident.kind == "native" else incident.lines[-1:]
    return f"{' '.join(line.text.strip() for line in shown)[:_MOST_CHARS]} (line {incident.line})"


def _fatal(incident: Incident) -> str:
    """Return the message of a fatal error without the progress bar before it, and with the text of its exception."""
    first, rest = incident.lines[0].text, incident.lines[1:]
    start = FATAL.search(first)
    text = first[start.start() :] if start else first
    what = next((line.text.strip() for line in rest if line.text.lstrip().startswith("what():")), "")
    return " ".join(f"{text} {what}".split())[:_MOST_CHARS]


def narrowed_note(guess: Narrowed) -> str:
    """Return the note on a release that the log does not name, with the lines that narrow it down."""
    if not guess.places:
        span = f"{guess.as_good[0]} to {guess.release}" if guess.as_good else guess.release
        return f"the log does not name the engine's release; {span} can raise this error; pass --engine to pick one"
    places = ", ".join(place.where for place in guess.places)
    which = "it is" if guess.exact == len(guess.places) else "it is close to"
    others = f" (or {', '.join(guess.as_good)})" if guess.as_good else ""
    return (
        f"the log does not name the engine's release; by {places} {which} {guess.release}{others}; "
        "pass --engine to pick one"
    )


def _message(incident: Incident, part: Raised) -> str:
    """Return the message of an exception; if it is empty, the engine function that raised the exception."""
    if part.paragraph:
        return f": {reply_text(part.paragraph)[:_MOST_CHARS]}"
    frame = engine_frame(incident)
    return (
        f" without a message in {frame.function} ({engine_path(frame)}:{frame.line})" if frame else " without a message"
    )


def _sentence(judged: Judgement, site: RaiseSite | None) -> str:
    ending, phase = judged.ending, judged.reading.last_phase
    match judged.verdict:
        case LogVerdict.NOT_A_LOG if not judged.reading.scanned.total_bytes:
            return "the log is empty"
        case LogVerdict.NOT_A_LOG:
            return f"{FOREIGN}, and nothing in it reports a failure"
        case LogVerdict.STOPPED:
            return f"stopped on request (line {ending.stop}) without an earlier failure"
        case LogVerdict.HEALTHY:
            return "serving without a failure"
        case LogVerdict.STARTING:
            return f"no failure so far{_in(phase)}{_moved(ending.last)}"
        case _:
            return _unknown(judged, site, phase)


def _unknown(judged: Judgement, site: RaiseSite | None, phase: str) -> str:
    if site and judged.open:
        return _rejection(judged.open[0], site)
    if judged.rivals:
        first, second = judged.rivals
        return f"the output of several ranks is interleaved; the cause may be `{first}` or `{second}`"
    if judged.open:
        return summary(judged.open[0])
    if judged.consequence:
        return _consequence(judged.consequence)
    if judged.observed:
        return f"`{judged.observed}` was observed, and the log does not explain it"
    return _silent_end(judged, phase)


def _consequence(incident: Incident) -> str:
    """Quote a failed warm-up with the reply of the server, which is the failure; report another exception as it is."""
    last = incident.last
    message = last.paragraph if last else ""
    if last and any(frame.function in _WARMUP for frame in last.frames) and reply_text(message) != message:
        return f"the warm-up request failed: {reply_text(message)[:_MOST_CHARS]} (line {incident.line})"
    return f"{summary(incident)}; this is a consequence, and the log does not show the failure before it"


def _silent_end(judged: Judgement, phase: str) -> str:
    ending = judged.ending
    if ending.death:
        return f"the engine died{_in(phase)} (line {ending.death}), and the log does not show why"
    if ending.stop:
        return f"the engine was already not responding (line {ending.stall}) when it was stopped"
    return f"the engine stopped responding (line {ending.stall}) but did not exit{_moved(ending.last)}"


def _in(phase: str) -> str:
    return f" in phase `{phase}`" if phase else ""


def _rejection(incident: Incident, site: RaiseSite) -> str:
    if not site.conditions:
        return f"{summary(incident)}; raised in {site.function} ({_place(site)})"
    reason = " and ".join(f"`{condition}`" for condition in site.conditions[-3:])
    message = incident.telling.paragraph[:_MOST_CHARS] if incident.telling else ""
    quoted = f": {message}" if message else ""
    return f"the engine raised this error because {reason} ({_place(site)}){quoted}"


def _reason(site: RaiseSite) -> str:
    if not site.conditions:
        return ""
    return f"Raised in {site.function} ({_place(site)}). Conditions that lead there: " + "; ".join(site.conditions)


def _place(site: RaiseSite) -> str:
    return f"{site.where} in SGLang {site.release}" if site.exact else f"near {site.where} in SGLang {site.release}"


def _moved(last: Line | None) -> str:
    if last is None:
        return ""
    at = f" at {last.time}" if last.time else ""
    return f"; last sign of progress: line {last.number}{at}: {last.text.strip()[:120]}"


def _match(hit: Hit) -> Match:
    title = fill(hit.rule.title, hit.captures)
    return Match(id=hit.rule.entry, role=hit.rule.role, title=title, evidence=hit.evidence, captures=hit.captures)


def _matches(hits: Iterable[Hit], role: Role) -> tuple[Match, ...]:
    """Return one match per entry id, with the evidence of its first hit."""
    first: dict[str, Hit] = {}
    for hit in matching.by_role(hits, role):
        first.setdefault(hit.rule.entry, hit)
    return tuple(_match(hit) for hit in first.values())


def _notes(judged: Judgement) -> Iterator[str]:
    """Report what limits the judgement: a foreign or incomplete log, an unknown release, skipped lines."""
    reading, incident = judged.reading, judged.at
    if reading.is_foreign and judged.verdict is not LogVerdict.NOT_A_LOG:
        yield FOREIGN
    if incident:
        yield from _incident_notes(incident)
    yield from request_notes(reading.scanned)
    first = reading.milestones[0].phase if reading.milestones else ""
    if first not in ("", "import", "args", "distributed"):
        yield f"the log starts in phase `{first}`: earlier lines, including the server args, are missing"
    version = str(reading.facts.get("engine.version") or "")
    if incident and parse_version(version) is None:
        known = f"`{version}` is not a release number" if version else "the log does not name the engine's release"
        yield f"{known}: remedies use the newest release's flag names; pass --engine to pick one"
    if reading.scanned.dropped_regions:
        yield f"skipped {reading.scanned.dropped_regions} parts of this noisy log: repetitions, or parts in its middle"


def _incident_notes(incident: Incident) -> Iterator[str]:
    if incident.interleaved:
        yield INTERLEAVED
    if incident.headless:
        yield HEADLESS
    if incident.tailless:
        yield TAILLESS


def _overcome_note(overcome: Sequence[Incident]) -> Iterator[str]:
    if overcome:
        count = f" and {len(overcome) - 1} more" if len(overcome) > 1 else ""
        yield f"the engine kept serving after {summary(overcome[0])}{count}"


def _starts_note(judged: Judgement, firsts: Sequence[int], before: Sequence[Judgement]) -> Iterator[str]:
    """Report how many starts the log contains, at which lines, and how the starts before the judged one ended."""
    if not firsts:
        return
    shown = [*firsts[:1], "...", *firsts[-MOST_SHOWN:]] if len(firsts) > MOST_SHOWN + 1 else firsts
    complete = not judged.reading.scanned.dropped_regions
    count = f"{len(firsts)}" if complete else f"at least {len(firsts)}"
    text = (
        f"the log contains {count} starts, at lines {', '.join(map(str, shown))}; this diagnosis is about the last one"
    )
    ends, last = [_end_of(item) for item in before], _end_of(judged)
    if set(ends) == {last}:
        which = "the earlier starts" if len(before) == len(firsts) - 1 else f"the {len(before)} starts before it"
        yield f"{text}; {which} ended the same way"
        return
    starts_by_end: dict[str, list[str]] = {}
    for first, end in zip(firsts[-len(ends) - 1 : -1], ends, strict=True):
        starts_by_end.setdefault(end, []).append(str(first))
    yield f"{text}; earlier starts: " + ", ".join(f"{end} (line {', '.join(at)})" for end, at in starts_by_end.items())


def _end_of(judged: Judgement) -> str:
    if judged.cause:
        return f"`{judged.cause.rule.entry}`"
    if judged.verdict not in (LogVerdict.CAUSE, LogVerdict.UNKNOWN):
        return "no failure"
    return judged.fingerprint or "unknown"
