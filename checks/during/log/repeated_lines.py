"""A finder in front of another: in a dense log it looks only at lines of a new shape, a shape being a line without
its digits. Crash loops and start-up logs repeated a thousand times cost a table look-up for each line.

What is done with a hit is `scan`; how words are found is `finders`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import TypeAlias

from checks.catalog.engine_phrases import ARGUMENTS

Find: TypeAlias = Callable[[bytes, int, int], int]

SAME_LIMIT = 20  # lines of one shape that are shown; what follows is counted
_SEGMENT_BYTES = 131_072
_PROBE_BYTES = 262_144  # how often the density is looked at
_DENSE = (
    1 / 50_000
)  # hits for each byte from which on remembering shapes pays: a hit costs 20 to 30 µs, a known line 0.3 µs
_TOO_NEW = 0.3  # share of new shapes among the lines of a segment from which on it does not
_FEW = 200
_MOST_SHAPES = 100_000  # then all are forgotten: flat memory
_DIGITS = b"0123456789"
_QUIET, _SATURATED = 0, 1
_START = ARGUMENTS.encode()


class ShapeFinder:
    """`(data, start, end)` → next hit on a line that is not known; `start` begins a line. Never goes back in `data`."""

    def __init__(self, find: Find) -> None:
        self.dropped = 0  # lines with a hit that were not shown
        self._find = find
        self._dense = False
        self._hits = self._bytes = 0  # since the density was looked at
        self._known: dict[bytes, int] = {}
        self._counts: dict[bytes, int] = {}
        self._data: bytes = b""
        self._cursor = 0
        self._segment = (0, 0)
        self._open: list[tuple[int, int, bytes]] = []  # lines of a new shape, the last one first

    def __call__(self, data: bytes, start: int, end: int) -> int:
        if data is not self._data or start < self._cursor:
            self._data, self._segment, self._cursor = data, (start, start), start
        place = self._shaped(start, end) if self._dense else self._plain(start, end)
        self._cursor = end if place < 0 else place
        return place

    def _plain(self, start: int, end: int) -> int:
        place = self._find(self._data, start, end)
        self._weigh(place >= 0, (end if place < 0 else place) - self._cursor)
        if self._dense:
            self._segment = (0, 0)
        return place

    def _weigh(self, hits: int, size: int) -> None:
        """After every so many bytes: is it worth while to remember shapes, from here on?"""
        self._hits += hits
        self._bytes += size
        if self._bytes >= _PROBE_BYTES:
            self._dense = self._hits > self._bytes * _DENSE
            self._hits = self._bytes = 0

    def _shaped(self, start: int, end: int) -> int:
        while start < end:
            if not self._segment[0] <= start < self._segment[1]:
                self._enter(start, end)
            while self._open:
                first, last, shape = self._open.pop()
                if first < start:
                    self._covered(shape)
                elif (place := self._look(first, last, shape)) >= 0:
                    return place
            start = max(start, self._segment[1])
            if not self._dense:
                return self._plain(start, end) if start < end else -1
        return -1

    def _enter(self, start: int, end: int) -> None:
        """Open the next segment: which of its lines are new?"""
        stop = self._data.find(b"\n", min(start + _SEGMENT_BYTES, end - 1), end) + 1 or end
        part = self._data[start:stop]
        shapes = part.translate(None, _DIGITS).split(b"\n")
        states = list(map(self._known.get, shapes))
        self._segment, self._open = (start, stop), []
        saturated = states.count(_SATURATED)
        self.dropped += saturated
        self._weigh(saturated, len(part))
        if None in states:
            new: dict[bytes, int] = {}
            for row, state in enumerate(states):
                if state is None:
                    new.setdefault(shapes[row], row)
            if len(new) > max(_FEW, len(states) * _TOO_NEW):
                self._dense = False
            self._open = self._places(part, start, [row for row, state in enumerate(states) if state is None], shapes)
        if _START in part:
            self._open = sorted({*self._open, *self._starts(start, stop)}, reverse=True)

    def _places(self, part: bytes, start: int, rows: list[int], shapes: list[bytes]) -> list[tuple[int, int, bytes]]:
        ends = list(accumulate((len(line) + 1 for line in part.split(b"\n")), initial=start))
        last = start + len(part)
        return [(ends[row], min(ends[row + 1], last), shapes[row]) for row in reversed(rows)]

    def _starts(self, start: int, stop: int) -> Iterator[tuple[int, int, bytes]]:
        """The lines with which an engine starts: every one is shown."""
        place = self._data.find(_START, start, stop)
        while place >= 0:
            first = self._data.rfind(b"\n", start, place) + 1 or start
            last = self._data.find(b"\n", place, stop) + 1 or stop
            yield first, last, self._data[first:last].translate(None, _DIGITS).rstrip(b"\n")
            place = self._data.find(_START, last, stop)

    def _covered(self, shape: bytes) -> None:
        """A new line that stands beside a hit, and was shown with it."""
        count = self._counts[shape] = self._counts.get(shape, 0) + 1
        if count > SAME_LIMIT:
            self._known.setdefault(shape, _QUIET)

    def _look(self, first: int, last: int, shape: bytes) -> int:
        """The hit on a line, unless enough of its shape were seen."""
        if _START in shape:
            self._known[shape] = _QUIET  # they are looked for by themselves
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
