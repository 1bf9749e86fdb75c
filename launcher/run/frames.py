"""Frames of the host's `follow` program → log text, process samples, the end. Knows nothing of what a log means.

Bytes are counted by offset, so that after a cut connection reading goes on where it stopped. Text is split into
lines at `\\n` and `\\r` (progress bars), freed of ANSI codes, and masked before anyone sees it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

MAX_HEADER = 1 << 16
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class LogBytes(Struct, frozen=True):
    """A piece of the log that begins at `offset`."""

    data: bytes
    offset: int


class Sample(Struct, frozen=True):
    """What the processes of the run are doing: rows of pid, name, state, cpu; CPU seconds and bytes read in all."""

    processes: tuple[dict[str, Any], ...]
    cpu: float
    read: int


class Replaced(Struct, frozen=True):
    """The log is shorter than what was read: somebody truncated or replaced it."""

    size: int


class Ended(Struct, frozen=True):
    """The process is gone. `state` is exited (with its code) or vanished."""

    state: str
    code: int | None


Frame = LogBytes | Sample | Replaced | Ended


class FrameReader:
    """Chunks in, frames out; a frame may be spread over any number of chunks."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._started = False

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Every frame that is complete now."""
        self._buffer += chunk
        while (frame := self._next()) is not None:
            yield frame

    def _next(self) -> Frame | None:
        if not self._started and not self._skip_greeting():
            return None
        end = self._buffer.find(b"\n", 0, MAX_HEADER)
        if end < 0:
            return None
        header = json.loads(self._buffer[:end])
        size = header.get("log", 0)
        if len(self._buffer) < end + 1 + size:
            return None
        data = bytes(self._buffer[end + 1 : end + 1 + size])
        del self._buffer[: end + 1 + size]
        return _frame(header, data)

    def _skip_greeting(self) -> bool:
        """A login shell may print before our program does; the first frame begins with `{"`."""
        start = self._buffer.find(b'{"')
        if start < 0:
            return False
        del self._buffer[:start]
        self._started = True
        return True


def _frame(header: dict[str, Any], data: bytes) -> Frame:
    if "log" in header:
        return LogBytes(data, header["at"])
    if "end" in header:
        return Ended(header["end"], header["code"])
    if "replaced" in header:
        return Replaced(header["replaced"])
    return Sample(tuple(header["processes"]), header["cpu"], header["read"])


class LineSplitter:
    """Bytes of a log → complete lines of text, without ANSI codes; `\\r` ends a line as `\\n` does."""

    MAX_LINE = 1 << 20

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, data: bytes) -> list[str]:
        """Lines completed by `data`. An over-long line is cut; empty ones are left out."""
        parts = (self._pending + data).replace(b"\r", b"\n").split(b"\n")
        self._pending = parts.pop()[-self.MAX_LINE :]
        return [line for part in parts if (line := _clean(part[: self.MAX_LINE]))]

    def rest(self) -> list[str]:
        """What is left when the log ends without a newline."""
        line, self._pending = _clean(self._pending), b""
        return [line] if line else []


def _clean(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    return _ANSI.sub("", text) if "\x1b" in text else text
