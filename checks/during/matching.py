"""Incidents × rules → Hits: which signatures speak, where, how decisively.

A rule speaks when all its regexes stand in one incident and its conditions hold for the facts. Which Hit is the cause
is decided in `diagnosis`.
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
    """One rule that speaks, on one incident; without incident it rests on facts and scattered lines alone."""

    rule: Rule
    incident: int  # index; -1 without
    lines: tuple[Line, ...]  # the decisive lines, in order
    captures: Mapping[str, str] = field(default_factory=dict)
    matched_chars: int = 0
    link: int = 0  # position in the chain of exceptions of its last decisive line; the root is 0

    @property
    def decisiveness(self) -> tuple[int, int, int, int, int]:
        """The larger, the better, among hits on one incident: weight first, then the root of a chain, then detail."""
        names = self.rule.condition.names if self.rule.condition else frozenset()
        return (self.rule.weight, -self.link, self.matched_chars, len(self.rule.all), len(names))

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The decisive lines as evidence."""
        return tuple(
            Evidence(text=line.text.strip()[:400], line=line.number, rank=line.rank, time=line.time)
            for line in self.lines[:_MAX_EVIDENCE]
        )


def find(incidents: Sequence[Incident], index: Index, facts: Facts) -> list[Hit]:
    """Every hit, in no particular order. Conditions on unknown facts do not hold."""
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
    """Where each regex stands: looked up once per regex, in the lines that hold a literal it needs."""

    def __init__(self, incidents: Sequence[Incident], index: Index) -> None:
        self._incidents = incidents
        self._lines = [(number, line) for number, incident in enumerate(incidents) for line in _readable(incident)]
        self._rows_with = _rows_with(index.literals, [line.text for _, line in self._lines])
        self._found: dict[str, dict[int, list[Line]]] = {}
        self._needs = index.needs
        seen = frozenset(self._rows_with)
        self._open = {regex for regex, need in index.needs.items() if not need or not seen.isdisjoint(need)}

    def possible(self, rule: Rule) -> bool:
        """Whether each of its regexes has a line to be tried on: rules out all but some ten of 800."""
        return self._open.issuperset(rule.all) and self._open.issuperset(rule.anywhere)

    def of(self, rule: Rule) -> list[int]:
        """The incidents on which a rule speaks; [-1] for one that needs no incident."""
        if not all(self._hits(regex) for regex in (*rule.all, *rule.anywhere)):
            return []
        if not rule.all:
            first = self._hits(rule.anywhere[0]) if rule.anywhere else {}
            return [next(iter(first), -1)]
        common = set(self._hits(rule.all[0])).intersection(*(self._hits(regex) for regex in rule.all[1:]))
        return sorted(common.difference(*(self._hits(regex) for regex in rule.without)))

    def hit(self, rule: Rule, spot: int) -> Hit:
        """The hit of a rule on an incident, with its evidence."""
        chosen: dict[int, Line] = {}
        captures: dict[str, str] = {}
        chars = 0
        for regex in rule.all or rule.anywhere:
            lines = self._hits(regex).get(spot) or next(iter(self._hits(regex).values()))
            found = compile_line(regex).search(lines[-1].text)
            chosen[id(lines[-1])] = lines[-1]
            if found:
                chars += len(found.group(0))
                captures.update({name: value for name, value in found.groupdict().items() if value})
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
        """Incident → its lines that a regex matches."""
        if regex not in self._found:
            found: dict[int, list[Line]] = {}
            pattern = compile_line(regex) if (rows := self._rows(regex)) else None
            for row in rows:
                number, line = self._lines[row]
                if pattern and pattern.search(line.text):
                    found.setdefault(number, []).append(line)
            self._found[regex] = found
        return self._found[regex]

    def _rows(self, regex: str) -> Sequence[int]:
        """The lines in which a regex may match."""
        need = self._needs.get(regex)
        if not need:
            return range(len(self._lines))
        return sorted({row for literal in need for row in self._rows_with.get(literal, ())})


def _readable(incident: Incident) -> Iterator[Line]:
    """The lines of an incident, and each message of several lines once more on one: patterns are matched by line."""
    yield from incident.lines
    for part in incident.chain:
        if part.type and "\n" in part.message.strip() and (paragraph := part.paragraph):
            own = incident.lines[part.first : part.last + 1]
            head = next((line for line in own if part.type in line.text), own[-1])
            yield replace(head, text=f"{part.type}: {paragraph}")


def _rows_with(literals: Words, texts: Sequence[str]) -> dict[str, list[int]]:
    """Literal → the texts that hold it, found in one pass over all of them."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    starts = list(accumulate((len(text) + 1 for text in encoded), initial=0))
    found: dict[str, list[int]] = {}
    for literal, place in occurrences(literals, b"\n".join(encoded)):
        rows = found.setdefault(literals.texts[literal], [])
        row = bisect_right(starts, place) - 1
        if not rows or rows[-1] != row:
            rows.append(row)
    return found


def by_role(hits: Iterable[Hit], role: Role) -> list[Hit]:
    """The hits of one role, earliest incident first."""
    return sorted((hit for hit in hits if hit.rule.role is role), key=lambda hit: (hit.incident, hit.rule.entry))
