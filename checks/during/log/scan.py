"""Reduce the byte chunks of a log to the few lines that matter, at about 400 MB/s with flat memory.

The words that patterns need (`required_words.cover`) are searched in whole chunks. Only around a word are lines cut
out, together with their record; all other lines are counted and dropped. `incidents` and `matching` interpret the kept
lines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from checks.catalog.engine_phrases import ARGUMENTS
from checks.during.log.lines import Line, is_record_start, parse
from checks.during.log.repeated_lines import SAME_LIMIT, ShapeFinder
from checks.during.log.word_search import Words, finder

BLOCK_BYTES = 1 << 20
KEEP_BYTES = 2 << 20  # kept of the earliest regions, and again of the latest; regions between them are dropped
AGAIN_BYTES = 4 << 20  # size of the end of a log in which its last start is scanned again, if there are several
LEAD_BYTES = 65_536  # output of a start before its server_args line
THICK_BYTES = 65_536  # if more than this is kept of a block, and it is dense, the whole block is kept
EDGE_BYTES = 16_384  # the beginning and the end of a log are kept completely
FOLLOW_LINES = 60  # raw lines kept after a hit: the rest of a message
LEAD_LINES = 12  # raw lines kept before a hit: the beginning of its record
_DIGITS = b"0123456789"
_START = ARGUMENTS.encode()


class Scanned(Struct, frozen=True, kw_only=True):
    """The kept lines of a log, and its size."""

    lines: tuple[Line, ...]  # in order; numbers have gaps where lines were dropped
    total_lines: int
    total_bytes: int
    dropped_regions: int  # hits beyond the memory limit: repeated regions, or the middle of a very noisy log


class _Region(Struct, frozen=True):
    offset: int
    number: int
    data: bytes


def scan(chunks: Iterable[bytes], words: Words) -> Scanned:
    """Return the lines around every occurrence of a word, and both ends of the log. Chunks may be cut anywhere."""
    scanner = _Scanner(words)
    for data, start, end in _blocks(chunks):
        scanner.take(data, start, end)
    return scanner.result()


def from_numbered(rows: Iterable[tuple[int, bytes]], *, lines: int, size: int, dropped: int) -> Scanned:
    """Return the Scanned of lines that were chosen elsewhere (on the host of a huge log), each with its number."""
    kept = tuple(line for number, raw in rows for line in parse(raw, number))
    return Scanned(lines=kept, total_lines=lines, total_bytes=size, dropped_regions=dropped)


def joined(first: Scanned, second: Scanned) -> Scanned:
    """Return two logs as one, the second after the first."""
    moved = (replace(line, number=line.number + first.total_lines) for line in second.lines)
    return Scanned(
        lines=(*first.lines, *moved),
        total_lines=first.total_lines + second.total_lines,
        total_bytes=first.total_bytes + second.total_bytes,
        dropped_regions=first.dropped_regions + second.dropped_regions,
    )


def _blocks(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, int, int]]:
    """Return `(data, start, end)` of whole lines, without copying chunks. A line longer than BLOCK_BYTES is cut."""
    carry = b""
    for chunk in chunks:
        first = chunk.find(b"\n") + 1 if carry else 0
        if carry and not first:
            carry += chunk
            cut = (carry.rfind(b"\r") + 1 or len(carry)) if len(carry) > BLOCK_BYTES else 0
            if cut:
                yield carry, 0, cut
                carry = carry[cut:]
            continue
        if carry:
            line = carry + chunk[:first]
            yield line, 0, len(line)
        end = chunk.rfind(b"\n") + 1
        if end > first:
            yield chunk, first, end
        carry = chunk[max(end, first) :]
    if carry:
        yield carry, 0, len(carry)


class _Scanner:
    """The state of one pass over a log."""

    def __init__(self, words: Words, offset: int = 0, number: int = 1) -> None:
        self._words = words
        self._find = ShapeFinder(finder(words))
        self._offset = offset
        self._number = number
        self._blocks: deque[tuple[int, int, bytes, int, int]] = deque()  # the latest: offset, number, data, start, end
        self._follow = 0  # raw lines that remain to be kept after the last hit of the previous block
        self._head = b""
        self._tail: deque[_Region] = deque()
        self._first: list[_Region] = []
        self._latest: deque[_Region] = deque()
        self._bytes = [0, 0]
        self._counts: dict[int, int] = {}  # hash of a region without digits → occurrences
        self._dropped = 0

    def take(self, data: bytes, begin: int, end: int) -> None:
        """Scan `data[begin:end]`, which contains whole lines."""
        if len(self._head) < EDGE_BYTES:
            self._head += data[begin : min(end, begin + EDGE_BYTES - len(self._head))]
        self._blocks.append((self._offset, self._number, data, begin, end))
        while len(self._blocks) > 1 and self._offset - self._blocks[1][0] > AGAIN_BYTES:
            self._blocks.popleft()
        base, number, counted, kept = self._offset - begin, self._number, begin, 0
        start, stop = begin, self._forward(data, begin, end)
        while True:
            if stop > start:
                number += _count(data, counted, start)
                counted = start
                kept += stop - start
                if self._bytes[0] >= KEEP_BYTES and kept > THICK_BYTES and kept * 2 > stop - begin:
                    stop = end  # nearly all of the block is kept so far, so its rest is kept without a search
                self._keep(_Region(base + start, number, data[start:stop]))
            hit = self._find(data, stop, end)
            if hit < 0:
                break
            start = self._backward(data, data.rfind(b"\n", begin, hit) + 1 or begin, stop)
            self._follow = FOLLOW_LINES
            stop = self._forward(data, _line_end(data, hit, end), end)
        self._number = number + _count(data, counted, end)
        self._keep_tail(data, begin, end)
        self._offset += end - begin

    def result(self) -> Scanned:
        """Return the kept lines in order, each once."""
        regions = [_Region(0, 1, self._head), *self._first, *self._latest, *self._again(), *self._tail]
        pieces: dict[int, tuple[int, bytes]] = {}
        for region in regions:
            offset, number = region.offset, region.number
            for raw in _newlines(region.data):
                if len(raw) >= len(pieces.get(offset, (0, b""))[1]):
                    pieces[offset] = (number, raw)
                offset += len(raw)
                number += raw.endswith(b"\n")
        lines = (line for offset in sorted(pieces) for line in parse(pieces[offset][1], pieces[offset][0]))
        ended = not self._tail or self._tail[-1].data.endswith(b"\n")
        total = self._number - (1 if ended else 0)
        dropped = self._dropped + self._find.dropped
        return Scanned(lines=tuple(lines), total_lines=total, total_bytes=self._offset, dropped_regions=dropped)

    def _again(self) -> list[_Region]:
        """Scan the last start again: lines equal to earlier starts were dropped, and the last start is judged."""
        if not (self._dropped or self._find.dropped):
            return []
        data = b"".join(data[start:end] for _, _, data, start, end in self._blocks)
        last = data.rfind(_START)
        if last < 0:
            return []
        # includes the output before its server_args line, but not the start before it
        lead = max(last - LEAD_BYTES, data.rfind(_START, 0, last), 0)
        first = data.find(b"\n", lead, last) + 1 or data.rfind(b"\n", 0, last) + 1
        offset, number = self._blocks[0][:2]
        second = _Scanner(self._words, offset + first, number + data.count(b"\n", 0, first))
        second.take(data, first, len(data))
        return [*second._first, *second._latest]

    def _keep_tail(self, data: bytes, begin: int, end: int) -> None:
        edge = data.rfind(b"\n", begin, max(end - EDGE_BYTES, begin)) + 1 or begin
        last = data[edge:end]
        self._tail.append(_Region(self._offset + edge - begin, self._number - last.count(b"\n"), last))
        held = sum(len(region.data) for region in self._tail)
        while held - len(self._tail[0].data) >= EDGE_BYTES:
            held -= len(self._tail.popleft().data)

    def _forward(self, data: bytes, start: int, end: int) -> int:
        """Return the end of the raw lines after a hit; the next record ends them."""
        while self._follow and start < end:
            if is_record_start(data, start):
                self._follow = 0
                break
            start = _line_end(data, start, end)
            self._follow -= 1
        return start

    @staticmethod
    def _backward(data: bytes, start: int, floor: int) -> int:
        """Return the start of the record around a line: at most LEAD_LINES lines earlier, never before `floor`."""
        for _ in range(LEAD_LINES):
            if start <= floor or is_record_start(data, start):
                break
            start = data.rfind(b"\n", floor, start - 1) + 1 or floor
        return max(start, floor)

    def _keep(self, region: _Region) -> None:
        if _START not in region.data and self._is_known(region.data):
            self._dropped += 1
            return
        if self._bytes[0] < KEEP_BYTES:
            self._first.append(region)
            self._bytes[0] += len(region.data)
            return
        self._latest.append(region)
        self._bytes[1] += len(region.data)
        while self._bytes[1] > KEEP_BYTES and len(self._latest) > 1:
            self._bytes[1] -= len(self._latest.popleft().data)
            self._dropped += 1

    def _is_known(self, data: bytes) -> bool:
        """Whether SAME_LIMIT regions were kept that are equal except for their digits."""
        key = hash(data.translate(None, _DIGITS))
        self._counts[key] = self._counts.get(key, 0) + 1
        known = self._counts[key] > SAME_LIMIT
        if len(self._counts) > 100_000:  # flat memory: the counts start again, and the byte limit still applies
            self._counts.clear()
        return known


def _count(data: bytes, start: int, end: int) -> int:
    """Count newlines in a part of `data`. In ms per MB: removing them takes 0.23, `bytes.count` 0.41, a copy 1.0."""
    if end - start < len(data) // 2:
        return data.count(b"\n", start, end)
    outside = data.count(b"\n", 0, start) + data.count(b"\n", end)
    return len(data) - len(data.replace(b"\n", b"")) - outside


def _line_end(data: bytes, start: int, end: int) -> int:
    return data.find(b"\n", start, end) + 1 or end


def _newlines(data: bytes) -> Iterator[bytes]:
    """Return the lines of a text that may contain `\\r`: it is cut only at newlines."""
    start = 0
    while start < len(data):
        end = _line_end(data, start, len(data))
        yield data[start:end]
        start = end
