"""Explain why the diagnosis of a log names an entry, or does not: for `diagnose --trace ID`.

The trace contains every pattern of the entry, the lines that match its regexes, its conditions with their facts, and
the cause that won instead. It reports the decisions of `judgement` and decides nothing. `checks.before.rule_trace` is
the counterpart for rules that run before a launch.
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
    """One regex of a pattern, and the lines of the judged start that it matches."""

    kind: str  # all, anywhere, without
    regex: str
    lines: tuple[int, ...]  # at most _MOST_LINES line numbers


class TracedPattern(Struct, frozen=True, kw_only=True):
    """One pattern of an entry, tested on the log."""

    number: int
    weight: str  # hint, usual, decisive
    yields_to: tuple[str, ...]  # entries that take precedence where they match the same failure
    engine: tuple[str, str]  # releases of the entry and of the pattern; empty: all
    applies: bool
    texts: tuple[TracedText, ...]
    condition: Step | None
    line: int  # first line of the incident it matches; 0: it does not match, or matches by facts alone
    speaks: bool  # whether it matches
    reason: str  # why it does not match; empty if it does


class CauseTrace(Struct, frozen=True, kw_only=True):
    """All patterns of one entry, tested on one log."""

    id: str
    role: Role
    release: str  # engine release that the diagnosis assumes; empty if unknown
    patterns: tuple[TracedPattern, ...]
    fired: bool  # whether the diagnosis lists the entry
    winner: str  # the cause that was named instead; empty if none was
    sentence: str


def trace(reading: Reading, slug: str, diagnosis: Diagnosis) -> CauseTrace:
    """Return the trace of the entry with id `slug`. `diagnosis` is the diagnosis of the same log."""
    judged = judge(starts_of(reading)[-1])
    reading, hits = judged.reading, judged.hits
    rules = [rule for rule in reading.index.rules if rule.entry == slug]
    patterns = tuple(_traced(number, rule, reading, hits) for number, rule in enumerate(rules, 1))
    own_hits = [hit for hit in hits if hit.rule.entry == slug]
    role = rules[0].role if rules else Role.CAUSE
    fired = _is_listed(slug, role, diagnosis)
    return CauseTrace(
        id=slug,
        role=role,
        release=str(reading.facts.get("engine.version") or ""),
        patterns=patterns,
        fired=fired,
        winner=diagnosis.cause.id if diagnosis.cause and diagnosis.cause.id != slug else "",
        sentence=_fired(role) if fired else _sentence(judged, patterns, own_hits, diagnosis),
    )


def _is_listed(slug: str, role: Role, diagnosis: Diagnosis) -> bool:
    listed = {Role.SYMPTOM: diagnosis.symptoms, Role.LEDGER: diagnosis.ledger, Role.BENIGN: diagnosis.dismissed}
    matches = listed.get(role, (diagnosis.cause,) if diagnosis.cause else ())
    return slug in {match.id for match in matches}


def _fired(role: Role) -> str:
    words = {
        Role.CAUSE: "names the cause",
        Role.SYMPTOM: "is listed as a symptom, which is never the cause",
        Role.BENIGN: "is listed as harmless: it looks alarming and has no effect",
        Role.LEDGER: "is listed as an unresolved warning",
    }
    return f"It fired: it {words[role]}."


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
    own_hits = [hit for hit in hits if _same(hit.rule, rule)]
    applies = all(engine.contains(version) for engine in rule.engine)
    first = next((hit.incident for hit in own_hits if hit.incident >= 0), -1)
    return TracedPattern(
        number=number,
        weight=rule.weight.name.lower(),
        yields_to=rule.yields_to,
        engine=(rule.engine[0].text, rule.engine[1].text),
        applies=applies,
        texts=tuple(texts),
        condition=condition,
        line=reading.incidents[first].line if first >= 0 else 0,
        speaks=bool(own_hits),
        reason="" if own_hits else _silence(applies, rule, texts, condition, str(version or "")),
    )


def _same(left: Rule, right: Rule) -> bool:
    """Compare without roles: `root_cause.settled` changes the role of a hit's rule."""
    return (left.entry, left.number) == (right.entry, right.number)


def _silence(applies: bool, rule: Rule, texts: Sequence[TracedText], condition: Step | None, version: str) -> str:
    if not applies:
        ranges = ", ".join(engine.text for engine in rule.engine if engine.text)
        return f"it applies to SGLang {ranges}, and the log is from {version}"
    absent = next((text for text in texts if text.kind != "without" and not text.lines), None)
    if absent is not None:
        return f"no line matches `{absent.regex}`"
    if condition is not None and condition.holds is not True:
        return why_not(condition)
    if any(text.kind == "without" and text.lines for text in texts):
        return "its `without` regex matches the same incident, or no incident matches all its other regexes"
    return "all its regexes match, but never in the same incident"


def _sentence(
    judged: Judgement, patterns: Sequence[TracedPattern], own_hits: Sequence[Hit], diagnosis: Diagnosis
) -> str:
    reading, winner = judged.reading, judged.cause
    if not patterns:
        return "It did not fire: it has no pattern for logs. It checks profiles before a launch: use `launch check`."
    if not own_hits:
        nearest = min(patterns, key=_distance)
        return f"It did not fire: pattern {nearest.number} comes closest, but {nearest.reason}."
    hit = min(own_hits, key=lambda item: (-item.rule.weight, item.incident))
    if hit.rule.role is Role.BENIGN:
        return f"It did not fire: it matches {_place(hit, reading)}, and the engine kept serving afterwards."
    reason = _lost(hit, winner, reading.incidents, judged.ending)
    if winner is not None and reason:
        name = winner.rule.entry
        return f"It matches {_place(hit, reading)}, but `{name}` on {_place(winner, reading)} won: {reason}."
    rivals = [other.rule.entry for other in by_incident(judged.hits).get(hit.incident, ()) if _covers(other, hit)]
    if rivals:
        return f"It matches {_place(hit, reading)}, but `{rivals[0]}`, which is not a cause, takes precedence there."
    if reason:
        return f"It matches {_place(hit, reading)} and does not name the cause: {reason}."
    return f"It matches {_place(hit, reading)}, but the log does not show whether it is the cause: {diagnosis.sentence}"


def _distance(pattern: TracedPattern) -> tuple[bool, int, bool]:
    """Return how far a pattern is from a match: wrong release, number of unmatched regexes, unmet condition."""
    absent = sum(text.kind != "without" and not text.lines for text in pattern.texts)
    return not pattern.applies, absent, pattern.condition is not None and pattern.condition.holds is not True


def _covers(other: Hit, hit: Hit) -> bool:
    """Whether a sign on the same incident outranks a cause, see `root_cause.decisive`."""
    least = {Role.BENIGN: hit.rule.weight, Role.SYMPTOM: hit.rule.weight + 1}.get(other.rule.role)
    return other.rule.entry in hit.rule.yields_to or (least is not None and other.rule.weight >= least)


def _lost(hit: Hit, winner: Hit | None, incidents: Sequence[Incident], ending: Ending) -> str:
    """Return why a hit did not become the cause, by the rules of `root_cause.choose`; empty for another reason."""
    if hit.incident >= 0 and ending.after_stop(incidents[hit.incident]):
        return f"a failure after the request to stop (line {ending.stop}) is not a cause"
    if hit.incident >= 0 and ending.overcome(incidents[hit.incident]):
        return "the engine kept serving after it"
    return "" if winner is None else next(_better(hit, winner, incidents), "")


def _better(hit: Hit, winner: Hit, incidents: Sequence[Incident]) -> Iterator[str]:
    weights = f"its weight is {winner.rule.weight.name.lower()} against {hit.rule.weight.name.lower()}"
    if winner.rule.entry in hit.rule.yields_to:
        yield f"`{hit.rule.entry}` yields to it wherever both match"
    elif winner.incident < 0 or hit.incident < 0:
        if winner.incident >= 0:
            yield "a cause with evidence in the log takes precedence over a cause that follows from facts alone"
        yield weights if winner.rule.weight > hit.rule.weight else "its condition names more facts"
    elif winner.incident == hit.incident:
        yield from _more_decisive(hit, winner, weights)
    elif incidents[hit.incident].kind == "line" and incidents[winner.incident].kind != "line":
        yield f"a single line does not outweigh the crash that it explains ({weights})"
    elif incidents[winner.incident].kind == "line" and incidents[hit.incident].kind != "line":
        yield f"that line is more decisive than the crash's own message ({weights})"
    elif incidents[winner.incident].line < incidents[hit.incident].line:
        yield "it happened earlier"
    else:
        yield weights


def _more_decisive(hit: Hit, winner: Hit, weights: str) -> Iterator[str]:
    words = (
        weights,
        "it is closer to the root of the exception chain",
        "its regexes match more of the incident",
        "it has more regexes",
        "its condition names more facts",
    )
    pairs = zip(words, winner.decisiveness, hit.decisiveness, strict=True)
    yield next((text for text, better, worse in pairs if better > worse), "both are equal, and it comes first")


def _place(hit: Hit, reading: Reading) -> str:
    return f"line {reading.incidents[hit.incident].line}" if hit.incident >= 0 else "facts alone"
