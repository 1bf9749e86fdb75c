"""The nearest of many words in a chunk of bytes: Hyperscan where it is installed, the standard library elsewhere.

Only finding; what is kept around a hit is `scan`. Measured with 387 words on a serving log, MB/s on one core:
Hyperscan 1180, RE2 400, Aho-Corasick (Rust, DFA) 360, `bytes.find` word by word 63.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from msgspec import Struct

from checks.catalog.engine_phrases import DECODE, PREFILL

Finder = Callable[[bytes, int, int], int]
"""`(data, start, end)` → a place in the next word in `data[start:end]`, -1 without one. `start` begins a line."""

# Runs of lines that hold no word of any signature (`literals.ORDINARY`). Possessive: no way back, so linear.
_ORDINARY_LINES = re.compile(
    rf'(?>\[20[^\]\n]*+\] (?:{DECODE}|{PREFILL}|INFO: {{1,5}}\S++ - "(?:GET|POST) [^"\n]*+" 200)[^\n]*+\n)++'.encode()
)
_SEGMENT_BYTES = 65_536
_PIECE_BYTES = 2_048  # a line asked about alone


class Words(Struct, frozen=True):
    """Words to look for, any number; none spans lines."""

    texts: tuple[str, ...]
    compiled: bytes = b""  # see `prepared`; without it each process compiles them


def prepared(texts: Iterable[str]) -> Words:
    """The words with what Hyperscan makes of them, to be kept: compiling 400 takes 13 ms, reading it back 0.03.

    It serves one kind of CPU and one release of Hyperscan; elsewhere it is noticed and made again.
    """
    plain = Words(tuple(texts))
    database = _database(plain)
    if database is None:
        return plain
    from hyperscan import dumpb

    return Words(plain.texts, dumpb(database))


def finder(words: Words) -> Finder:
    """A search for these words."""
    database = _database(words)
    return PlainFinder([word.encode() for word in words.texts]) if database is None else SetFinder(database)


def occurrences(words: Words, data: bytes) -> Iterable[tuple[int, int]]:
    """`(index of a word, place in one of its occurrences)` for all of them; in order for each word."""
    database = _database(words)
    if database is None:
        return _one_by_one(words.texts, data)
    found: list[tuple[int, int]] = []
    keep = found.append
    database.scan(
        data,
        match_event_handler=lambda word, _from, to, _flags, _context: keep((word, to - 1)),
        scratch=_scratch(database),
    )
    return found


@cache
def _database(words: Words) -> Any:
    """The words as Hyperscan wants them; None where it is not installed, and without words."""
    if not words.texts:
        return None
    try:
        import hyperscan
    except ImportError:  # no wheel for this platform
        return None
    if words.compiled:
        with suppress(hyperscan.error):
            return hyperscan.loadb(words.compiled, hyperscan.HS_MODE_BLOCK)
    database = hyperscan.Database()
    needles = [word.encode() for word in words.texts]
    database.compile(expressions=needles, ids=list(range(len(needles))), flags=[0] * len(needles), literal=True)
    return database


def _scratch(database: Any) -> Any:
    """Working memory of one scan at a time (13 µs to make): threads share the database, never this."""
    from hyperscan import Scratch

    return Scratch(database)


def _one_by_one(words: Sequence[str], data: bytes) -> Iterator[tuple[int, int]]:
    for index, word in enumerate(words):
        needle = word.encode()
        place = data.find(needle)
        while place >= 0:
            yield index, place
            place = data.find(needle, place + 1)


class SetFinder:
    """All words at once: a segment is searched when it is first asked about, and its hits are kept. For one thread."""

    def __init__(self, database: Any) -> None:
        self._database, self._scratch = database, _scratch(database)
        self._data = b""
        self._range = (0, 0)  # the segment of `_data` that was searched
        self._places: list[int] = []  # of the last byte of each word in it

    def __call__(self, data: bytes, start: int, end: int) -> int:
        if data is not self._data:
            self._data, self._range = data, (0, 0)
        while start < end:
            if not self._range[0] <= start < self._range[1]:
                if end - start < _PIECE_BYTES:
                    return next(iter(self._search(start, end)), -1)
                self._enter(start, end)
            row = bisect_left(self._places, start)
            if row < len(self._places):
                return self._places[row] if self._places[row] < end else -1
            start = self._range[1]
        return -1

    def _enter(self, start: int, end: int) -> None:
        """Search the next segment, of whole lines where there are any."""
        stop = end
        if end - start > _SEGMENT_BYTES:
            stop = self._data.find(b"\n", start + _SEGMENT_BYTES, end) + 1 or end
        self._range, self._places = (start, stop), self._search(start, stop)

    def _search(self, start: int, end: int) -> list[int]:
        places: list[int] = []
        before, keep = start - 1, places.append
        self._database.scan(
            self._data[start:end],
            match_event_handler=lambda _word, _from, to, _flags, _context: keep(before + to),
            scratch=self._scratch,
        )
        return places


class PlainFinder:
    """Without Hyperscan: ordinary lines are skipped by one regex, the rest is searched word by word."""

    def __init__(self, needles: Sequence[bytes]) -> None:
        self._needles = needles
        self._data = b""
        self._cursor = 0
        self._range = (0, 0)  # the segment of `_data` that was searched
        self._next: list[tuple[int, bytes]] = []  # next place of each word that the segment holds

    def __call__(self, data: bytes, start: int, end: int) -> int:
        if data is not self._data or start < self._cursor:
            self._data, self._range = data, (0, 0)
        self._cursor = start
        while start < end:
            if not self._range[0] <= start < self._range[1]:
                start = self._advance(start, end)
            place = self._nearest(start)
            if place >= 0:
                return place if place < end else -1
            start = max(self._range[1], start)
        return -1

    def _advance(self, start: int, end: int) -> int:
        """Open the next segment of lines that are not ordinary; its beginning."""
        skipped = _ORDINARY_LINES.match(self._data, start, end)
        start = skipped.end() if skipped else start
        stop = start
        while stop < end and stop - start < _SEGMENT_BYTES and not _ORDINARY_LINES.match(self._data, stop, end):
            stop = self._data.find(b"\n", stop, end) + 1 or end
        self._range = (start, stop)
        found = ((self._data.find(needle, start, stop), needle) for needle in self._needles)
        self._next = [item for item in found if item[0] >= 0] if stop > start else []
        return start

    def _nearest(self, start: int) -> int:
        stop = self._range[1]
        moved = (
            (place if place >= start else self._data.find(needle, start, stop), needle) for place, needle in self._next
        )
        self._next = [item for item in moved if item[0] >= 0]
        return min(self._next)[0] if self._next else -1
