"""Match rules to incidents: which patterns of the knowledge match, on which incident, how decisively.

A rule matches if all its regexes match in one incident and its condition holds for the facts. `root_cause` decides
which Hit is the cause.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from msgspec import Struct, field
from msgspec.structs import replace

from checks.catalog.conditions import Facts
from checks.catalog.line_patterns import compile_line
from checks.during.log.incidents import Incident
from checks.during.log.lines import Line
from checks.during.log.word_search import Words, occurrences
from checks.during.signature_index import Index, Rule
from checks.vocabulary import Evidence, Role

_MAX_EVIDENCE = 8


class Hit(Struct, frozen=True, kw_only=True):
    """One rule that matches one incident; without an incident, it matches by facts and scattered lines alone."""

    rule: Rule
    incident: int  # index of the incident; -1 without one
    lines: tuple[Line, ...]  # the decisive lines, in order
    captures: Mapping[str, str] = field(default_factory=dict)
    matched_chars: int = 0
    link: int = 0  # position of its last decisive line in the exception chain; the root is 0

    @property
    def decisiveness(self) -> tuple[int, int, int, int, int]:
        """The rank among hits on one incident: weight first, then distance to the root of the chain, then detail."""
        names = self.rule.condition.names if self.rule.condition else frozenset()
        return (self.rule.weight, -self.link, self.matched_chars, len(self.rule.all), len(names))

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The first decisive lines, at most _MAX_EVIDENCE, as evidence."""
        return tuple(
            Evidence(text=line.text.strip()[:400], line=line.number, rank=line.rank, time=line.time)
            for line in self.lines[:_MAX_EVIDENCE]
        )


def find(incidents: Sequence[Incident], index: Index, facts: Facts) -> list[Hit]:
    """Return every hit, in no particular order. Conditions on unknown facts do not hold."""
    places = _Places(incidents, index)
    version = facts.get("engine.version")
    hits: list[Hit] = []
    for rule in index.rules:
        if not places.possible(rule) or not all(engine.contains(version) for engine in rule.engine):
            continue
        spots = places.of(rule)
        if spots and ((condition := rule.condition) is None or condition.holds(facts)):
            hits.extend(places.hit(rule, spot) for spot in spots)
    return hits


class _Places:
    """The incidents that each regex matches: searched once per regex, only in lines with a literal it needs."""

    def __init__(self, incidents: Sequence[Incident], index: Index) -> None:
        self._incidents = incidents
        self._lines = [(number, line) for number, incident in enumerate(incidents) for line in _readable(incident)]
        self._rows_with = _rows_with(index.literals, [line.text for _, line in self._lines])
        self._found: dict[str, dict[int, list[Line]]] = {}
        self._needs = index.needs
        present = frozenset(self._rows_with)
        self._open = {regex for regex, need in index.needs.items() if not need or not present.isdisjoint(need)}

    def possible(self, rule: Rule) -> bool:
        """Whether each regex of a rule has a line to search. This rules out all but about ten of 800 rules."""
        return self._open.issuperset(rule.all) and self._open.issuperset(rule.anywhere)

    def of(self, rule: Rule) -> list[int]:
        """Return the incidents that a rule matches; [-1] for a rule that needs no incident."""
        if not all(self._hits(regex) for regex in (*rule.all, *rule.anywhere)):
            return []
        if not rule.all:
            first = self._hits(rule.anywhere[0]) if rule.anywhere else {}
            return [next(iter(first), -1)]
        common = set(self._hits(rule.all[0])).intersection(*(self._hits(regex) for regex in rule.all[1:]))
        return sorted(common.difference(*(self._hits(regex) for regex in rule.without)))

    def hit(self, rule: Rule, spot: int) -> Hit:
        """Return the hit of a rule on an incident, with its evidence."""
        chosen: dict[int, Line] = {}
        captures: dict[str, str] = {}
        chars = 0
        for regex in rule.all or rule.anywhere:
            lines = self._hits(regex).get(spot) or next(iter(self._hits(regex).values()))
            match = compile_line(regex).search(lines[-1].text)
            chosen[id(lines[-1])] = lines[-1]
            if match:
                chars += len(match.group(0))
                captures.update({name: value for name, value in match.groupdict().items() if value})
        ordered = tuple(sorted(chosen.values(), key=lambda line: line.number))
        return Hit(
            rule=rule,
            incident=spot,
            lines=ordered,
            captures=captures,
            matched_chars=chars,
            link=self._link(spot, ordered),
        )

    def _link(self, spot: int, lines: Iterable[Line]) -> int:
        if spot < 0 or len(self._incidents[spot].chain) < 2:
            return 0
        incident = self._incidents[spot]
        numbers = {line.number for line in lines}
        last = max((row for row, line in enumerate(incident.lines) if line.number in numbers), default=0)
        return next((index for index, part in enumerate(incident.chain) if part.first <= last <= part.last), 0)

    def _hits(self, regex: str) -> dict[int, list[Line]]:
        """Return incident → lines of it that a regex matches."""
        if regex not in self._found:
            lines_by_incident: dict[int, list[Line]] = {}
            pattern = compile_line(regex) if (rows := self._rows(regex)) else None
            for row in rows:
                number, line = self._lines[row]
                if pattern and pattern.search(line.text):
                    lines_by_incident.setdefault(number, []).append(line)
            self._found[regex] = lines_by_incident
        return self._found[regex]

    def _rows(self, regex: str) -> Sequence[int]:
        """Return the indices of the lines in which a regex may match."""
        need = self._needs.get(regex)
        if not need:
            return range(len(self._lines))
        return sorted({row for literal in need for row in self._rows_with.get(literal, ())})


def _readable(incident: Incident) -> Iterator[Line]:
    """Return the lines of an incident, and each multi-line message once more as one line: patterns match lines."""
    yield from incident.lines
    for part in incident.chain:
        if part.type and "\n" in part.message.strip() and (paragraph := part.paragraph):
            own_lines = incident.lines[part.first : part.last + 1]
            head = next((line for line in own_lines if part.type in line.text), own_lines[-1])
            yield replace(head, text=f"{part.type}: {paragraph}")


def _rows_with(literals: Words, texts: Sequence[str]) -> dict[str, list[int]]:
    """Return literal → indices of the texts that contain it, from one pass over all texts."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    starts = list(accumulate((len(text) + 1 for text in encoded), initial=0))
    rows_by_literal: dict[str, list[int]] = {}
    for literal, place in occurrences(literals, b"\n".join(encoded)):
        rows = rows_by_literal.setdefault(literals.texts[literal], [])
        row = bisect_right(starts, place) - 1
        if not rows or rows[-1] != row:
            rows.append(row)
    return rows_by_literal


def by_role(hits: Iterable[Hit], role: Role) -> list[Hit]:
    """Return the hits of one role, earliest incident first."""
    return sorted((hit for hit in hits if hit.rule.role is role), key=lambda hit: (hit.incident, hit.rule.entry))
