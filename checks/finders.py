"""The nearest of many words in a chunk of bytes: RE2 where it is installed, the standard library elsewhere.

Only finding; what is kept around a hit is `scan`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from checks.regex import re2_module

Finder = Callable[[bytes, int, int], int]
"""`(data, start, end)` → position of the next word in `data[start:end]`, -1 without one. `start` begins a line."""

# Runs of lines that hold no word of any signature (`literals.ORDINARY`). Possessive: no way back, so linear.
_ORDINARY_LINES = re.compile(
    rb'(?>\[20[^\]\n]*+\] (?:Decode batch|Prefill batch|INFO: {1,5}\S++ - "(?:GET|POST) [^"\n]*+" 200)[^\n]*+\n)++'
)
_SEGMENT_BYTES = 65_536


def finder(words: Sequence[str]) -> Finder:
    """A search for these words; any number of them."""
    needles = [word.encode() for word in words]
    engine = re2_module()
    if engine is None:
        return PlainFinder(needles)
    options = engine.Options()
    options.max_mem = 128 << 20  # states are built as needed; the default of 8 MiB makes it forget and start over
    options.encoding = engine.Options.Encoding.LATIN1
    pattern = engine.compile(b"|".join(engine.escape(needle) for needle in needles), options)

    def find(data: bytes, start: int, end: int) -> int:
        found = pattern.search(data, start, end)
        return -1 if found is None else int(found.start())

    return find


class PlainFinder:
    """Without RE2: ordinary lines are skipped by one regex, the rest is searched for each word with `bytes.find`."""

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
