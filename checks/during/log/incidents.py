"""Build Incidents from kept lines: tracebacks with chain and message, usage errors, fatal blocks, failures of
native code, single lines.

`incident_builder` decides which lines belong together; the patterns of the knowledge interpret frames and messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from checks.during.log.incident_builder import CHAIN, ERROR, FRAME, Builder, Draft, ends
from checks.during.log.lines import Line

_DUMP_FRAME = re.compile(r"\s+(?P<function>[\w.<>]+) \((?P<file>[\w./<>-]+\.py):(?P<line>\d+)\)")  # py-spy

_DUMPED = re.compile(r'\s*File "[^"]+", line \d+ in ')  # faulthandler: innermost frame first


class Frame(Struct, frozen=True, kw_only=True):
    """One frame of a traceback."""

    file: str
    function: str
    line: int


_LONG_ENOUGH = 12  # characters of a message that another exception does not contain by chance


class Raised(Struct, frozen=True, kw_only=True):
    """One exception of a chain."""

    type: str  # with its module if printed; empty if the end of the traceback is missing
    message: str  # all lines of the message
    frames: tuple[Frame, ...]
    first: int  # indices into the incident's lines
    last: int

    @property
    def paragraph(self) -> str:
        """The message up to its first blank line, on one line: the engine breaks messages where its source does."""
        rows = takewhile(str.strip, self.message.strip().splitlines())
        return " ".join(" ".join(rows).split())


class Incident(Struct, frozen=True, kw_only=True):
    """A possible failure: the unit in which patterns match."""

    kind: str  # traceback | usage | fatal | native | line
    lines: tuple[Line, ...]
    chain: tuple[Raised, ...] = ()  # the exceptions, root first
    dump: tuple[Frame, ...] = ()  # the stack that a fatal error printed, outermost first; of the first thread shown
    interleaved: bool = False  # output of several ranks is interleaved: some of its lines belong to it by guess
    headless: bool = False  # the start of the traceback is missing

    @property
    def line(self) -> int:
        """The number of its first line."""
        return self.lines[0].number

    @property
    def time(self) -> str:
        """The time of its record; empty if no line has one."""
        return next((line.time for line in self.lines if line.time), "")

    @property
    def rank(self) -> str:
        """The rank that printed it; empty if no line names one."""
        return next((line.rank for line in self.lines if line.rank), "")

    @property
    def tailless(self) -> bool:
        """Whether the end of a traceback is missing: the exception itself is not in the log."""
        return bool(self.chain) and not self.chain[-1].type

    @property
    def frames(self) -> tuple[Frame, ...]:
        """Every frame, outermost first: of the exceptions from the root, or of the stack of a fatal error."""
        return tuple(frame for part in self.chain for frame in part.frames) or self.dump

    @property
    def last(self) -> Raised | None:
        """The last exception of the chain, which ended the process; None for an incident without a traceback."""
        return self.chain[-1] if self.chain else None

    @property
    def telling(self) -> Raised | None:
        """The exception to quote: the last, or an earlier one if the last is cut off, or repeats it among advice."""
        last, earlier = self.last, [part for part in self.chain[:-1] if part.type]
        if self.tailless and earlier:
            return earlier[-1]
        repeated = (part for part in earlier if len(part.paragraph) >= _LONG_ENOUGH)
        return next((part for part in repeated if last and part.paragraph in last.message), last)


def incidents(lines: Iterable[Line]) -> tuple[Incident, ...]:
    """Return every incident in order of first lines. Each line belongs to exactly one, but blank lines may drop out."""
    builder = Builder()
    for line in _with_times(lines):
        builder.add(line)
    return tuple(_finish(draft) for draft in builder.drafts)


def raised(lines: tuple[Line, ...]) -> tuple[Raised, ...]:
    """Return the exceptions of a traceback, root first."""
    exceptions: list[Raised] = []
    begin = 0
    for index, line in enumerate(lines):
        if line.text.lstrip(" |+").startswith(CHAIN):
            exceptions.append(_raised(lines, begin, index))
            begin = index + 1
    exceptions.append(_raised(lines, begin, len(lines)))
    return tuple(item for item in exceptions if item.type or item.frames)


def _with_times(lines: Iterable[Line]) -> Iterator[Line]:
    """Give raw lines the time of the last record above them, so that incidents can be ordered."""
    time = ""
    for line in lines:
        if line.headed:
            time = line.time
            yield line
        else:
            yield replace(line, time=time) if time else line


def _finish(draft: Draft) -> Incident:
    lines = draft.lines
    while len(lines) > 1 and not lines[-1].text.strip():
        lines = lines[:-1]
    kept = _as_headed(lines)
    chain = raised(kept) if draft.kind == "traceback" else ()
    return Incident(
        kind=draft.kind,
        lines=kept,
        chain=chain,
        dump=_dumped(kept) if draft.kind == "fatal" else (),
        interleaved=draft.interleaved,
        headless=draft.headless,
    )


def _dumped(lines: tuple[Line, ...]) -> tuple[Frame, ...]:
    """Return the frames of the first stack of a fatal error: faulthandler begins with the crashed thread."""
    frames: list[Frame] = []
    for line in lines:
        frame = FRAME.match(line.text)
        if frame:
            frames.append(_frame(frame))
        elif frames:
            break
    return tuple(reversed(frames))


def _frame(match: re.Match[str]) -> Frame:
    return Frame(file=match["file"], function=(match["function"] or "").strip(), line=int(match["line"]))


def _as_headed(lines: list[Line]) -> tuple[Line, ...]:
    """Give raw lines below a record its rank and time, even if lines of other records lie between them in the log."""
    head = lines[0]
    if not head.headed:
        return tuple(lines)
    below = (line if line.headed else replace(line, rank=line.rank or head.rank, time=head.time) for line in lines[1:])
    return (head, *below)


def _raised(lines: tuple[Line, ...], begin: int, end: int) -> Raised:
    frames, error, dumped = [], -1, False
    for index in range(begin, end):
        text = lines[index].text
        frame = FRAME.match(text) or _DUMP_FRAME.match(text)
        if frame:
            frames.append(_frame(frame))
            dumped = dumped or _DUMPED.match(text) is not None
        elif error < 0 and ends(text.lstrip(" |+") if "|" in text[:6] else text):
            error = index
    if dumped:
        frames.reverse()
    if error < 0:
        return Raised(type="", message="", frames=tuple(frames), first=begin, last=max(end - 1, begin))
    match = ERROR.match(lines[error].text.lstrip(" |+"))
    further_lines = [line.text for line in lines[error + 1 : end]]
    message = "\n".join([(match["message"] or "") if match else "", *further_lines]).strip()
    name = match["type"] if match else ""
    return Raised(type=name, message=message, frames=tuple(frames), first=begin, last=max(end - 1, begin))
