"""Why a cause was named for a log, or was not: every pattern of one entry, its texts with the lines that hold them, its
conditions with their facts, and what won instead.

It words what `judgement` came to and judges nothing by itself. The side before a launch is `checks.before.rule_trace`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from checks.catalog.conditions import Step, explain
from checks.catalog.line_patterns import compile_line
from checks.during.judgement import Judgement, judge
from checks.during.log.ending import Ending
from checks.during.log.incidents import Incident
from checks.during.matching import Hit
from checks.during.reading import Reading, starts_of
from checks.during.root_cause import by_incident
from checks.during.signature_index import Rule
from checks.facts.trace_words import why_not
from checks.vocabulary import Diagnosis, Role

_MOST_LINES = 8


class TracedText(Struct, frozen=True, kw_only=True):
    """One regex of a pattern, and the lines of the judged start on which it is found."""

    kind: str  # all, anywhere, without
    regex: str
    lines: tuple[int, ...]  # the first of them


class TracedPattern(Struct, frozen=True, kw_only=True):
    """One pattern of an entry, held against the log."""

    number: int
    weight: str  # hint, usual, decisive
    yields_to: tuple[str, ...]  # entries that go first where they speak on the same failure
    engine: tuple[str, str]  # releases of the entry and of the pattern; empty: all
    applies: bool
    texts: tuple[TracedText, ...]
    condition: Step | None
    line: int  # of the incident on which it speaks; 0: it does not speak, or rests on facts alone
    speaks: bool
    reason: str  # why it does not speak


class CauseTrace(Struct, frozen=True, kw_only=True):
    """All patterns of one entry, held against one log."""

    id: str
    role: Role
    release: str  # that the log is judged as; empty where nobody knows it
    patterns: tuple[TracedPattern, ...]
    fired: bool
    winner: str  # what was named instead; empty: nothing
    sentence: str


def trace(reading: Reading, slug: str, found: Diagnosis) -> CauseTrace:
    """The trace of an entry of that id. `found`: the diagnosis of the same log."""
    judged = judge(starts_of(reading)[-1])
    reading, hits = judged.reading, judged.hits
    rules = [rule for rule in reading.index.rules if rule.entry == slug]
    patterns = tuple(_traced(number, rule, reading, hits) for number, rule in enumerate(rules, 1))
    own = [hit for hit in hits if hit.rule.entry == slug]
    role = rules[0].role if rules else Role.CAUSE
    fired = _is_listed(slug, role, found)
    return CauseTrace(
        id=slug,
        role=role,
        release=str(reading.facts.get("engine.version") or ""),
        patterns=patterns,
        fired=fired,
        winner=found.cause.id if found.cause and found.cause.id != slug else "",
        sentence=_fired(role) if fired else _sentence(judged, patterns, own, found),
    )


def _is_listed(slug: str, role: Role, found: Diagnosis) -> bool:
    listed = {Role.SYMPTOM: found.symptoms, Role.LEDGER: found.ledger, Role.BENIGN: found.dismissed}
    matches = listed.get(role, (found.cause,) if found.cause else ())
    return slug in {match.id for match in matches}


def _fired(role: Role) -> str:
    words = {
        Role.CAUSE: "it names the cause",
        Role.SYMPTOM: "it is listed as a symptom, which is never the cause",
        Role.BENIGN: "it is listed as what looks alarming and means nothing",
        Role.LEDGER: "it is listed as an open warning",
    }
    return f"It fired: {words[role]}."


def _traced(number: int, rule: Rule, reading: Reading, hits: Sequence[Hit]) -> TracedPattern:
    lines = [line for incident in reading.incidents for line in incident.lines]
    texts = []
    for kind in ("all", "anywhere", "without"):
        for regex in getattr(rule, kind):
            pattern = compile_line(regex)
            numbers = (line.number for line in lines if pattern.search(line.text))
            texts.append(TracedText(kind=kind, regex=regex, lines=tuple(dict.fromkeys(numbers))[:_MOST_LINES]))
    condition = explain(rule.when, reading.facts) if rule.when else None
    version = reading.facts.get("engine.version")
    own = [hit for hit in hits if _same(hit.rule, rule)]
    applies = all(engine.contains(version) for engine in rule.engine)
    first = next((hit.incident for hit in own if hit.incident >= 0), -1)
    return TracedPattern(
        number=number,
        weight=rule.weight.name.lower(),
        yields_to=rule.yields_to,
        engine=(rule.engine[0].text, rule.engine[1].text),
        applies=applies,
        texts=tuple(texts),
        condition=condition,
        line=reading.incidents[first].line if first >= 0 else 0,
        speaks=bool(own),
        reason="" if own else _silence(applies, rule, texts, condition, str(version or "")),
    )


def _same(one: Rule, other: Rule) -> bool:
    """A hit may carry its rule with another role, see `root_cause.settled`."""
    return (one.entry, one.number) == (other.entry, other.number)


def _silence(applies: bool, rule: Rule, texts: Sequence[TracedText], condition: Step | None, version: str) -> str:
    if not applies:
        ranges = ", ".join(engine.text for engine in rule.engine if engine.text)
        return f"it is about SGLang {ranges}, and the log is of {version}"
    absent = next((text for text in texts if text.kind != "without" and not text.lines), None)
    if absent is not None:
        return f"`{absent.regex}` is found on no line"
    if condition is not None and condition.holds is not True:
        return why_not(condition)
    if any(text.kind == "without" and text.lines for text in texts):
        return "what must not stand there (`without`) stands in the same incident, or its texts never meet in one"
    return "its texts are found, but never together in one incident"


def _sentence(judged: Judgement, patterns: Sequence[TracedPattern], own: Sequence[Hit], found: Diagnosis) -> str:
    reading, winner = judged.reading, judged.cause
    if not patterns:
        return "It did not fire: it has no pattern for a log; it speaks before a launch (`launch check`)."
    if not own:
        nearest = min(patterns, key=_distance)
        return f"It did not fire: pattern {nearest.number} comes nearest, but {nearest.reason}."
    hit = min(own, key=lambda item: (-item.rule.weight, item.incident))
    if hit.rule.role is Role.BENIGN:
        return f"It did not fire: it speaks on {_place(hit, reading)}, and the engine went on afterwards."
    reason = _lost(hit, winner, reading.incidents, judged.ending)
    if winner is not None and reason:
        name = winner.rule.entry
        return f"It speaks on {_place(hit, reading)}, and `{name}` on {_place(winner, reading)} won: {reason}."
    rivals = [other.rule.entry for other in by_incident(judged.hits).get(hit.incident, ()) if _covers(other, hit)]
    if rivals:
        return f"It speaks on {_place(hit, reading)}, and `{rivals[0]}`, which is no cause, says more there."
    if reason:
        return f"It speaks on {_place(hit, reading)} and names no cause: {reason}."
    return f"It speaks on {_place(hit, reading)}, and the log leaves open whether it is the cause: {found.sentence}"


def _distance(pattern: TracedPattern) -> tuple[bool, int, bool]:
    """How far a pattern is from speaking: out of range, texts that are missing, a condition that does not hold."""
    absent = sum(text.kind != "without" and not text.lines for text in pattern.texts)
    return not pattern.applies, absent, pattern.condition is not None and pattern.condition.holds is not True


def _covers(other: Hit, hit: Hit) -> bool:
    """Whether a sign on the same incident keeps a cause from being named, see `root_cause.decisive`."""
    least = {Role.BENIGN: hit.rule.weight, Role.SYMPTOM: hit.rule.weight + 1}.get(other.rule.role)
    return other.rule.entry in hit.rule.yields_to or (least is not None and other.rule.weight >= least)


def _lost(hit: Hit, winner: Hit | None, incidents: Sequence[Incident], ending: Ending) -> str:
    """Why a hit did not become the cause, by the rules of `root_cause.choose`; empty: for another reason."""
    if hit.incident >= 0 and ending.after_stop(incidents[hit.incident]):
        return f"what follows the request to stop in line {ending.stop} is no cause"
    if hit.incident >= 0 and ending.overcome(incidents[hit.incident]):
        return "the engine went on after it"
    return "" if winner is None else next(_better(hit, winner, incidents), "")


def _better(hit: Hit, winner: Hit, incidents: Sequence[Incident]) -> Iterator[str]:
    weights = f"its weight is {winner.rule.weight.name.lower()}, against {hit.rule.weight.name.lower()}"
    if winner.rule.entry in hit.rule.yields_to:
        yield f"`{hit.rule.entry}` yields to it wherever both speak"
    elif winner.incident < 0 or hit.incident < 0:
        if winner.incident >= 0:
            yield "a cause that stands in the log goes before one that rests on facts alone"
        yield weights if winner.rule.weight > hit.rule.weight else "its condition names more facts"
    elif winner.incident == hit.incident:
        yield from _more_decisive(hit, winner, weights)
    elif incidents[hit.incident].kind == "line" and incidents[winner.incident].kind != "line":
        yield f"a single line does not outweigh the crash that it explains ({weights})"
    elif incidents[winner.incident].kind == "line" and incidents[hit.incident].kind != "line":
        yield f"that line is more decisive than what the crash says of itself ({weights})"
    elif incidents[winner.incident].line < incidents[hit.incident].line:
        yield "it stands earlier"
    else:
        yield weights


def _more_decisive(hit: Hit, winner: Hit, weights: str) -> Iterator[str]:
    words = (
        weights,
        "it stands nearer to the root of the chain of exceptions",
        "its texts match more of the incident",
        "it has more texts",
        "its condition names more facts",
    )
    pairs = zip(words, winner.decisiveness, hit.decisiveness, strict=True)
    yield next((text for text, theirs, ours in pairs if theirs > ours), "both are equal, and it comes first")


def _place(hit: Hit, reading: Reading) -> str:
    return f"line {reading.incidents[hit.incident].line}" if hit.incident >= 0 else "the facts alone"
