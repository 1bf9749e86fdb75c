"""Group lines into drafts of incidents, by the text of each line and the lines above it.

Ranks write into one file without locking, so every unfinished traceback is kept. `interleaving` chooses the traceback
that a line without a rank continues; `incidents` parses the frames and messages of a finished draft.
"""

from __future__ import annotations

import re

from msgspec import Struct, field

from checks.catalog.engine_phrases import ARGUMENTS, NEW_PROCESS
from checks.during.log import interleaving
from checks.during.log.interleaving import Known, Stack
from checks.during.log.lines import Line, is_bar
from checks.during.log.native_lines import is_native_failure

START = "Traceback (most recent call last)"
CHAIN = ("The above exception was the direct cause of", "During handling of the above exception")
FRAME = re.compile(r'\s*(?:[|+ ]\s*)?File "(?P<file>[^"]+)", line (?P<line>\d+)(?:,? in (?P<function>.+))?')
ERROR = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning|Unsupported|Iteration|Failed|Failure|Group"
    r"|Timeout|NotFound|Cancelled|Full|Empty|Expired)|(?:[a-z_]\w*\.)+[A-Z]\w*|Exception)(?::\s?(?P<message>.*))?$"
)
_USAGE_END = re.compile(r"[\w./-]+(?: serve)?: error: .+")  # argparse; gcc has `file:line:column: error:`
FATAL = re.compile(
    r"terminate called|Fatal Python error|!{3,} ?Segfault encountered|Segmentation fault|\*\*\* SIG\w+ received"
    r"|what\(\): |Assertion .* failed|F\d{4} \d\d:\d\d"
)
_LIKELY_NOISE = re.compile(r"\S+:\d+: \w*Warning: |bash: line \d+: |(?:rc|RC)=\d+|Killed$|Terminated$|usage: ")
_FOREIGN = re.compile(r"\S+:\d+:\d+ \[\d+\] NCCL |\[[WEI]\d|[WEIF]\d{4} ")  # NCCL, torch and glog log directly
_REACH = 400  # greatest distance in lines between parts of an interleaved traceback
_NEAR = 60  # greatest distance at which a line that is not a frame still continues a traceback
_MOST_STACKS = 32  # ranks that write at the same time


class Draft(Struct):
    """The lines of one incident while it is built."""

    kind: str
    lines: list[Line]
    interleaved: bool = False  # whether some of its lines belong to it by guess
    headless: bool = False  # its first line is a frame: the start of the traceback is missing
    ended: bool = False  # its exception line was read
    stack: Stack = field(default_factory=Stack)


class Builder:
    """Takes lines one by one and builds drafts, in the order of their first lines."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self._open: Draft | None = None
        self._previous = 0
        self._stacks: list[Draft] = []  # the latest tracebacks, finished or not
        self._known = Known()

    def add(self, line: Line) -> None:
        """Add the next line."""
        if line.number > self._previous + 1:
            self._open = None
        self._previous = line.number
        arguments = line.text.startswith(ARGUMENTS)  # a line of 10 kB that is neither a traceback nor fatal
        if arguments or is_new_process(line) or line.text.startswith("usage: "):
            self._stacks.clear()  # another process does not continue a traceback that was cut off
        if line.headed:
            self._open = self._start("line" if arguments else _kind(line.text), line)
        else:
            self._open = self._interleaved(line) or self._raw(line)

    def _start(self, kind: str, line: Line) -> Draft:
        draft = Draft(kind, [line], ended=kind == "traceback" and ends(line.text))
        self.drafts.append(draft)
        if START in line.text or FRAME.match(line.text):
            self._advance(draft, line)
            self._stacks = [*self._stacks[1 - _MOST_STACKS :], draft]
        return draft

    def _interleaved(self, line: Line) -> Draft | None:
        """Add a line to the traceback that it continues across other tracebacks; None if none is interleaved."""
        part, text = _part(line.text), line.text
        if line.rank or line.stream or not (part == "chain" or self._others(line, _REACH)):
            return None
        if part in ("start", "chain", "text"):
            draft = self._of_text(line)
        else:
            near = [item for item in self._stacks if not item.ended and _distance(item, line) < _limit(part)]
            place = interleaving.owner([item.stack for item in near], part, text, self._known)
            draft = near[place] if place >= 0 else None
        if draft is None or draft is self._open:
            return None if draft is None else self._grow(draft, line, part)
        draft.interleaved = True
        return self._grow(draft, line, part)

    def _others(self, line: Line, reach: int) -> bool:
        """Whether a traceback other than the open one is unfinished."""
        return any(not item.ended and item is not self._open and _distance(item, line) < reach for item in self._stacks)

    def _of_text(self, line: Line) -> Draft | None:
        """Return the traceback that free text continues: the text of a chain, its next start, or a message."""
        text = line.text
        near = [item for item in self._stacks if _distance(item, line) < _NEAR]
        if START in text:
            return next((item for item in near if item.stack.part == "chain"), None)
        if self._open in near and self._open is not None and self._open.ended:
            return None
        ended = [item for item in near if item.ended]
        latest = max(ended, key=lambda item: item.stack.moved, default=None)
        if latest is None or text.startswith(CHAIN):
            return latest  # None: the text continues the open traceback, whose exception ERROR did not match
        return latest if self._open in near and text.strip() else None

    def _grow(self, draft: Draft, line: Line, part: interleaving.Part) -> Draft:
        draft.lines.append(line)
        self._advance(draft, line)
        if line.text.lstrip(" |+").startswith(CHAIN):
            draft.ended = False
        elif part == "error":
            draft.ended = True
        return draft

    def _advance(self, draft: Draft, line: Line) -> None:
        text = line.text
        if draft.ended and not text.lstrip(" |+").startswith(CHAIN):
            draft.stack.moved = line.number
            return
        interleaving.advance(draft.stack, _part(text), text, self._known, line.number)

    def _raw(self, line: Line) -> Draft | None:
        text, draft = line.text, self._open
        if draft and _process(line) and _process(draft.lines[0]) and _process(line) != _process(draft.lines[0]):
            draft = self._of_process(line)
        if draft and draft.kind == "traceback":
            return self._traceback(draft, line)
        if draft and draft.kind == "fatal" and FRAME.match(text):
            draft.lines.append(line)  # the stack that faulthandler prints
            return draft
        if START in text or FRAME.match(text):
            return self._resume(line)
        if text.startswith("usage: "):
            return self._start("usage", line)
        if draft and draft.kind == "usage":
            draft.lines.append(line)
            return None if _USAGE_END.match(text) else draft
        if draft and _continues(draft, text):
            draft.lines.append(line)
            return draft
        return self._start(_raw_kind(text), line) if text.strip() else draft

    def _traceback(self, draft: Draft, line: Line) -> Draft | None:
        """Add a raw line below a traceback: a frame, the exception, its message, a chained one, or a new incident."""
        text = line.text
        if START in text:
            before = (item.text.lstrip(" |+") for item in draft.lines[-3:])
            chained = not draft.ended and any(row.startswith(CHAIN) for row in before)
            if chained or "|" in text[:6]:
                return self._grow(draft, line, "start")
            return self._start("traceback", line)
        if draft.ended and text.startswith("  File ") and FRAME.match(text):
            return self._resume(line)
        if _LIKELY_NOISE.match(text) or (is_bar(text) and draft.ended):
            return self._other(line)
        if draft.ended and (_FOREIGN.match(text) or FATAL.match(text) or ends(text) or is_native_failure(text)):
            return self._other(line)
        return self._grow(draft, line, _part(text))

    def _other(self, line: Line) -> Draft:
        return self._start("usage" if line.text.startswith("usage: ") else _raw_kind(line.text), line)

    def _resume(self, line: Line) -> Draft:
        """Handle a start, or a frame without one above it: the second part of a traceback that was cut in two."""
        if START in line.text:
            return self._start("traceback", line)
        for draft in reversed(self._stacks[-8:]):
            cut = not draft.ended and _distance(draft, line) < _REACH
            if cut and draft is not self._open:
                draft.interleaved = True
                return self._grow(draft, line, "frame")
        draft = self._start("traceback", line)
        draft.headless = True
        return draft

    def _of_process(self, line: Line) -> Draft | None:
        """Return the latest draft of the process of a line, where each line names its process."""
        for draft in reversed(self.drafts[-_MOST_STACKS:]):
            if _process(draft.lines[0]) == _process(line):
                return draft
        return None


def _kind(text: str) -> str:
    """Return the kind of an incident that begins with a record of the engine."""
    return "traceback" if START in text else _raw_kind(text)


def is_new_process(line: Line) -> bool:
    """Whether a line is the first line that an engine's main process prints."""
    return NEW_PROCESS in line.text or line.text.startswith("nohup: ignoring input")


def ends(text: str) -> bool:
    """Whether a line below frames is the exception itself: it is not indented, and it is not a frame."""
    return bool(text) and not text[0].isspace() and not FRAME.match(text) and ERROR.match(text) is not None


def _part(text: str) -> interleaving.Part:
    if START in text:
        return "start"
    return "chain" if text.lstrip(" |+").startswith(CHAIN) else interleaving.part_of(text, ends(text))


def _limit(part: interleaving.Part) -> int:
    return _REACH if part == "frame" else _NEAR


def _distance(draft: Draft, line: Line) -> int:
    return line.number - draft.lines[-1].number


def _process(line: Line) -> str:
    return line.stream or line.rank


def _raw_kind(text: str) -> str:
    if _USAGE_END.match(text):
        return "usage"
    error = ERROR.match(text)
    if error and not error["type"].endswith("Warning") and not _LIKELY_NOISE.match(text):
        return "traceback"
    return "fatal" if FATAL.search(text) else "native" if is_native_failure(text) else "line"


def _continues(draft: Draft, text: str) -> bool:
    """Whether a raw line is part of the message above it."""
    if len(draft.lines) > _REACH or not text.strip():
        return False
    if draft.kind == "fatal":
        return not _LIKELY_NOISE.match(text)
    if draft.kind == "native":
        return text[0].isspace() or draft.lines[-1].text.rstrip().endswith(":")
    if is_native_failure(text):
        return False
    if not draft.lines[0].headed or is_bar(text) or _LIKELY_NOISE.match(text) or _FOREIGN.match(text):
        return False
    return not ERROR.match(text) and not FATAL.search(text)
