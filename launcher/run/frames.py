"""Parses the frames of the host's `follow` program into log bytes, process samples and the end of the run.

Log bytes carry their offset, so that reading resumes at the right place after a lost connection. The content of the log
is not interpreted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

MAX_HEADER = 1 << 16
_COMPILERS = frozenset(
    {"nvcc", "ptxas", "cicc", "cc1plus", "cudafe++", "ninja", "fatbinary", "nvlink", "hipcc", "clang++"}
)


class LogBytes(Struct, frozen=True):
    """A piece of the log that begins at `offset`."""

    data: bytes
    offset: int


class Sample(Struct, frozen=True):
    """What the processes of the run do: rows of pid, name, state and cpu; total CPU seconds and bytes read."""

    processes: tuple[dict[str, Any], ...]
    cpu: float
    read: int

    @property
    def compilers(self) -> list[str]:
        """Names of the compilers among the processes."""
        names = (row["name"].split(maxsplit=1)[0].rpartition("/")[2] for row in self.processes if row["name"].split())
        return sorted({name for name in names if name in _COMPILERS})

    @property
    def stopped(self) -> int:
        """Number of processes that a signal has stopped."""
        return sum(1 for row in self.processes if row["state"] in "Tt")


class Replaced(Struct, frozen=True):
    """The log is shorter than the part already read: it was truncated or replaced. `size` is in bytes."""

    size: int


class Ended(Struct, frozen=True):
    """The process is gone. `state` is `exited`, with its code, or `vanished`."""

    state: str
    code: int | None
    asked: bool = False  # whether the run had been asked to stop


Frame = LogBytes | Sample | Replaced | Ended


class FrameReader:
    """Turns chunks into frames; a frame may span any number of chunks."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._started = False

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Yield every frame that this chunk completes."""
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
        """Skip what a login shell printed first: the first frame begins with `{"`. Returns whether it has arrived."""
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
        return Ended(header["end"], header["code"], bool(header.get("asked")))
    if "replaced" in header:
        return Replaced(header["replaced"])
    return Sample(tuple(header["processes"]), header["cpu"], header["read"])
