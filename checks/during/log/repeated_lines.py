"""Skip repeated lines in front of a word search: in a dense log, only lines of a new shape are searched.

The shape of a line is the line without its digits. A line of a known shape costs one table look-up, so crash loops and
start-up logs that are repeated a thousand times stay cheap. `scan` uses the hits; `word_search` finds the words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import TypeAlias

from checks.catalog.engine_phrases import ARGUMENTS

Find: TypeAlias = Callable[[bytes, int, int], int]

SAME_LIMIT = 20  # lines of one shape that are returned; further lines are only counted
_SEGMENT_BYTES = 131_072
_PROBE_BYTES = 262_144  # interval at which the density is measured
_DENSE = (
    1 / 50_000
)  # hits per byte above which remembering shapes pays off: a hit costs 20 to 30 µs, a known line 0.3 µs
_TOO_NEW = 0.3  # share of new shapes among the lines of a segment above which it does not pay off
_FEW = 200
_MOST_SHAPES = 100_000  # then all shapes are forgotten, so that memory stays flat
_DIGITS = b"0123456789"
_QUIET, _SATURATED = 0, 1
_START = ARGUMENTS.encode()


class ShapeFinder:
    """`(data, start, end)` → the next hit on a line of a new shape. `start` begins a line and never decreases."""

    def __init__(self, find: Find) -> None:
        self.dropped = 0  # lines with a hit that were not returned
        self._find = find
        self._dense = False
        self._hits = self._bytes = 0  # since the last measurement of the density
        self._known: dict[bytes, int] = {}
        self._counts: dict[bytes, int] = {}
        self._data: bytes = b""
        self._cursor = 0
        self._segment = (0, 0)
        self._pending: list[tuple[int, int, bytes]] = []  # unsearched lines of a new shape, the last one first

    def __call__(self, data: bytes, start: int, end: int) -> int:
        if data is not self._data or start < self._cursor:
            self._data, self._segment, self._cursor = data, (start, start), start
        place = self._shaped(start, end) if self._dense else self._plain(start, end)
        self._cursor = end if place < 0 else place
        return place

    def _plain(self, start: int, end: int) -> int:
        place = self._find(self._data, start, end)
        self._measure(place >= 0, (end if place < 0 else place) - self._cursor)
        if self._dense:
            self._segment = (0, 0)
        return place

    def _measure(self, hits: int, size: int) -> None:
        """Add hits and bytes; every _PROBE_BYTES bytes, decide whether remembering shapes pays off from here on."""
        self._hits += hits
        self._bytes += size
        if self._bytes >= _PROBE_BYTES:
            self._dense = self._hits > self._bytes * _DENSE
            self._hits = self._bytes = 0

    def _shaped(self, start: int, end: int) -> int:
        while start < end:
            if not self._segment[0] <= start < self._segment[1]:
                self._enter(start, end)
            while self._pending:
                first, last, shape = self._pending.pop()
                if first < start:
                    self._covered(shape)
                elif (place := self._search(first, last, shape)) >= 0:
                    return place
            start = max(start, self._segment[1])
            if not self._dense:
                return self._plain(start, end) if start < end else -1
        return -1

    def _enter(self, start: int, end: int) -> None:
        """Open the next segment and collect its lines of a new shape."""
        stop = self._data.find(b"\n", min(start + _SEGMENT_BYTES, end - 1), end) + 1 or end
        part = self._data[start:stop]
        shapes = part.translate(None, _DIGITS).split(b"\n")
        states = list(map(self._known.get, shapes))
        self._segment, self._pending = (start, stop), []
        saturated = states.count(_SATURATED)
        self.dropped += saturated
        self._measure(saturated, len(part))
        if None in states:
            new: dict[bytes, int] = {}
            for row, state in enumerate(states):
                if state is None:
                    new.setdefault(shapes[row], row)
            if len(new) > max(_FEW, len(states) * _TOO_NEW):
                self._dense = False
            rows = [row for row, state in enumerate(states) if state is None]
            self._pending = self._places(part, start, rows, shapes)
        if _START in part:
            self._pending = sorted({*self._pending, *self._starts(start, stop)}, reverse=True)

    def _places(self, part: bytes, start: int, rows: list[int], shapes: list[bytes]) -> list[tuple[int, int, bytes]]:
        ends = list(accumulate((len(line) + 1 for line in part.split(b"\n")), initial=start))
        last = start + len(part)
        return [(ends[row], min(ends[row + 1], last), shapes[row]) for row in reversed(rows)]

    def _starts(self, start: int, stop: int) -> Iterator[tuple[int, int, bytes]]:
        """Return the lines with which an engine starts, all of which are searched."""
        place = self._data.find(_START, start, stop)
        while place >= 0:
            first = self._data.rfind(b"\n", start, place) + 1 or start
            last = self._data.find(b"\n", place, stop) + 1 or stop
            yield first, last, self._data[first:last].translate(None, _DIGITS).rstrip(b"\n")
            place = self._data.find(_START, last, stop)

    def _covered(self, shape: bytes) -> None:
        """Count a line of a new shape that was returned with a neighbouring hit."""
        count = self._counts[shape] = self._counts.get(shape, 0) + 1
        if count > SAME_LIMIT:
            self._known.setdefault(shape, _QUIET)

    def _search(self, first: int, last: int, shape: bytes) -> int:
        """Return the hit on a line; -1 without one, or if enough lines of its shape were returned."""
        if _START in shape:
            self._known[shape] = _QUIET  # `_starts` finds these lines
            return self._data.find(_START, first, last)
        state = self._known.get(shape)
        if state is not None:
            self.dropped += state
            return -1
        place = self._find(self._data, first, last) if last > first else -1
        self._hits += place >= 0
        count = self._counts[shape] = self._counts.get(shape, 0) + (place >= 0)
        if place >= 0 and count <= SAME_LIMIT:
            return place
        if len(self._known) > _MOST_SHAPES:
            self._known.clear()
            self._counts.clear()
        self._known[shape] = _QUIET if place < 0 else _SATURATED
        self.dropped += place >= 0
        return -1
