"""Kept Lines → Incidents: tracebacks with their whole chain and message, usage errors, fatal blocks, single lines.

Ranks write into one file without locking: a traceback may be cut by another rank's record and go on behind it. What a
frame or a message means is no matter here; that is `signatures`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from checks.loglines import Line, is_bar

_START = "Traceback (most recent call last)"
_FRAME = re.compile(r'\s*(?:[|+ ]\s*)?File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
_DUMP_FRAME = re.compile(r"\s+(?P<function>[\w.<>]+) \((?P<file>[\w./<>-]+\.py):(?P<line>\d+)\)")  # py-spy
_ERROR = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning|Unsupported|Iteration|Failed|Failure|Group"
    r"|Timeout|NotFound|Cancelled|Full|Empty|Expired)|(?:[a-z_]\w*\.)+[A-Z]\w*|Exception)(?::\s?(?P<message>.*))?$"
)
_CHAIN = ("The above exception was the direct cause of", "During handling of the above exception")
_USAGE_END = re.compile(r"[\w./-]+(?: serve)?: error: .+")  # argparse; gcc has `file:line:column: error:`
_FATAL = re.compile(
    r"terminate called|Fatal Python error|!{3,} ?Segfault encountered|Segmentation fault|\*\*\* SIG\w+ received"
    r"|what\(\): |Assertion .* failed|F\d{4} \d\d:\d\d"
)
_LIKELY_NOISE = re.compile(r"\S+:\d+: \w*Warning: |bash: line \d+: |(?:rc|RC)=\d+|Killed$|Terminated$|usage: ")
_FOREIGN = re.compile(r"\S+:\d+:\d+ \[\d+\] NCCL |\[[WEI]\d|[WEIF]\d{4} ")  # NCCL, torch and glog write of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame of a traceback."""

    file: str
    function: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """One exception of a chain."""

    type: str  # with its module when printed; empty when the end of the traceback is missing
    message: str  # all its lines
    frames: tuple[Frame, ...]
    first: int  # indices into the incident's lines
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that may have gone wrong: the unit in which signatures look for text."""

    kind: str  # traceback | usage | fatal | line
    lines: tuple[Line, ...]
    chain: tuple[Raised, ...] = ()  # the root first
    notes: tuple[str, ...] = ()

    @property
    def line(self) -> int:
        """Number of its first line."""
        return self.lines[0].number

    @property
    def time(self) -> str:
        """Time of the record it belongs to."""
        return next((line.time for line in self.lines if line.time), "")

    @property
    def rank(self) -> str:
        """Rank that printed it."""
        return next((line.rank for line in self.lines if line.rank), "")

    @property
    def last(self) -> Raised | None:
        """The exception that ended the process; None for lines."""
        return self.chain[-1] if self.chain else None


@dataclass(slots=True)
class _Draft:
    kind: str
    lines: list[Line]
    notes: list[str] = field(default_factory=list)
    ended: bool = False  # its exception line was seen
    closed: bool = False  # nothing may be added any more


def incidents(lines: Iterable[Line]) -> tuple[Incident, ...]:
    """Every incident in the order of its first line. Each line belongs to exactly one; blank ones may be dropped."""
    builder = _Builder()
    for line in _with_times(lines):
        builder.add(line)
    return tuple(_finish(draft) for draft in builder.drafts)


def raised(lines: tuple[Line, ...]) -> tuple[Raised, ...]:
    """The exceptions of a traceback, root first."""
    found: list[Raised] = []
    begin = 0
    for index, line in enumerate(lines):
        if line.text.lstrip(" |+").startswith(_CHAIN):
            found.append(_raised(lines, begin, index))
            begin = index + 1
    found.append(_raised(lines, begin, len(lines)))
    return tuple(item for item in found if item.type or item.frames)


class _Builder:
    """Lines one by one → drafts. Keeps at most one open draft per rank prefix, and unfinished ones to go on with."""

    def __init__(self) -> None:
        self.drafts: list[_Draft] = []
        self._open: _Draft | None = None
        self._previous = 0

    def add(self, line: Line) -> None:
        """The next line."""
        if line.number > self._previous + 1 and self._open:
            self._open = None
        self._previous = line.number
        if line.headed:
            self._begin(line)
        else:
            self._raw(line)

    def _begin(self, line: Line) -> None:
        kind = "traceback" if _START in line.text else "fatal" if _FATAL.search(line.text) else "line"
        self._open = self._start(kind, line)

    def _start(self, kind: str, line: Line) -> _Draft:
        draft = _Draft(kind, [line])
        self.drafts.append(draft)
        return draft

    def _raw(self, line: Line) -> None:
        text, draft = line.text, self._open
        if draft and line.rank and draft.lines[0].rank and line.rank != draft.lines[0].rank:
            draft = self._of_rank(line.rank)
        if draft and draft.kind == "traceback":
            draft = self._traceback(draft, line)
        elif _START in text or _is_frame(text):
            draft = self._resume(line)
        elif text.startswith("usage: "):
            draft = self._start("usage", line)
        elif draft and draft.kind == "usage":
            draft.lines.append(line)
            draft = None if _USAGE_END.match(text) else draft
        elif draft and self._continues(draft, text):
            draft.lines.append(line)
        elif text.strip():
            draft = self._start(self._raw_kind(text), line)
        self._open = draft

    @staticmethod
    def _raw_kind(text: str) -> str:
        if _USAGE_END.match(text):
            return "usage"
        if _ERROR.match(text) and not _LIKELY_NOISE.match(text):
            return "traceback"
        return "fatal" if _FATAL.search(text) else "line"

    def _continues(self, draft: _Draft, text: str) -> bool:
        """Whether a raw line is part of the message above it."""
        if draft.closed or len(draft.lines) > 400:
            return False
        if draft.kind == "fatal":
            return bool(text.strip()) and not _LIKELY_NOISE.match(text)
        if not draft.lines[0].headed or is_bar(text) or _LIKELY_NOISE.match(text) or _FOREIGN.match(text):
            return False
        return bool(text.strip()) and not _ERROR.match(text) and not _FATAL.search(text)

    def _traceback(self, draft: _Draft, line: Line) -> _Draft | None:
        """A raw line below a traceback: a frame, the exception, its message, a chained one, or something new."""
        text = line.text
        bare = text.lstrip(" |+")
        if _START in text:
            chained = draft.ended is False and any(
                item.text.lstrip(" |+").startswith(_CHAIN) for item in draft.lines[-3:]
            )
            if chained or "|" in text[:6]:
                draft.lines.append(line)
                return draft
            return self._start("traceback", line)
        if bare.startswith(_CHAIN):
            draft.lines.append(line)
            draft.ended = False
            return draft
        if draft.ended and text.startswith("  File ") and _is_frame(text):
            return self._resume(line)
        if _LIKELY_NOISE.match(text) or (is_bar(text) and draft.ended):
            return self._other(line)
        if draft.ended and (_FOREIGN.match(text) or _FATAL.match(text)):
            return self._other(line)
        draft.lines.append(line)
        if not draft.ended and _ends(text):
            draft.ended = True
        return draft

    def _other(self, line: Line) -> _Draft:
        return self._start("usage" if line.text.startswith("usage: ") else self._raw_kind(line.text), line)

    def _resume(self, line: Line) -> _Draft:
        """A frame without a start above it: the rest of a traceback that another rank's record cut in two."""
        if _START in line.text:
            return self._start("traceback", line)
        for draft in reversed(self.drafts[-8:]):
            cut = draft.kind == "traceback" and not draft.ended and draft.lines[-1].number > line.number - 400
            if cut and draft is not self._open:
                draft.notes.append("interleaved with another rank's output")
                draft.lines.append(line)
                return draft
        draft = self._start("traceback", line)
        draft.notes.append("the start of this traceback is missing")
        return draft

    def _of_rank(self, rank: str) -> _Draft | None:
        """The open traceback of a rank, where each line says which rank wrote it."""
        for draft in reversed(self.drafts[-32:]):
            if draft.lines[0].rank == rank:
                return draft
        return None


def _with_times(lines: Iterable[Line]) -> Iterator[Line]:
    """Raw lines get the time of the last record above them, so that incidents can be ordered."""
    time = ""
    for line in lines:
        if line.headed:
            time = line.time
            yield line
        else:
            yield replace(line, time=time) if time else line


def _is_frame(text: str) -> bool:
    return _FRAME.match(text) is not None


def _ends(text: str) -> bool:
    """Whether a line below frames is the exception itself: it stands at the margin and is no frame."""
    return bool(text) and not text[0].isspace() and not _is_frame(text) and (_ERROR.match(text) is not None)


def _finish(draft: _Draft) -> Incident:
    lines = draft.lines
    while len(lines) > 1 and not lines[-1].text.strip():
        lines = lines[:-1]
    kept = tuple(lines)
    chain = raised(kept) if draft.kind == "traceback" else ()
    notes = list(dict.fromkeys(draft.notes))
    if draft.kind == "traceback" and chain and not chain[-1].type:
        notes.append("the end of this traceback is missing: the exception itself is not in the log")
    return Incident(kind=draft.kind, lines=kept, chain=chain, notes=tuple(notes))


def _raised(lines: tuple[Line, ...], begin: int, end: int) -> Raised:
    frames, error = [], -1
    for index in range(begin, end):
        text = lines[index].text
        frame = _FRAME.match(text) or _DUMP_FRAME.match(text)
        if frame:
            function = (frame["function"] or "").strip()
            frames.append(Frame(file=frame["file"], function=function, line=int(frame["line"])))
        elif error < 0 and _ends(text.lstrip(" |+") if "|" in text[:6] else text):
            error = index
    if error < 0:
        return Raised(type="", message="", frames=tuple(frames), first=begin, last=max(end - 1, begin))
    found = _ERROR.match(lines[error].text.lstrip(" |+"))
    rest = [line.text for line in lines[error + 1 : end]]
    message = "\n".join([(found["message"] or "") if found else "", *rest]).strip()
    name = found["type"] if found else ""
    return Raised(type=name, message=message, frames=tuple(frames), first=begin, last=max(end - 1, begin))
