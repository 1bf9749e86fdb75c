"""Reads the new part of a run's log, which the local copy does not contain yet: once, into memory.

The copy is not changed, because another launcher may be following the same run and writing it (`log_copy`).
"""

from __future__ import annotations

from launcher.clock import Clock
from launcher.errors import LauncherError
from launcher.run import remote
from launcher.run.frames import Ended, LogBytes
from launcher.run.log_copy import Lost, Tail
from launcher.run.store import Run
from launcher.secrets import Masker
from launcher.transport.base import Transport

PATIENCE = 10.0  # seconds


def fresh_log(transport: Transport, run: Run, clock: Clock) -> bytes:
    """Return the new bytes, with secrets masked; empty when they cannot be read, as a validation can do without them.

    Waits at most PATIENCE seconds.
    """
    start = int((run.read("log.offset") or {"remote": 0})["remote"])
    try:
        look = remote.look(transport, run)
    except LauncherError:
        return b""
    data, end = b"", clock.monotonic() + PATIENCE
    tail = Tail(transport, run, start)
    try:
        while start + len(data) < look.log_bytes and clock.monotonic() < end:
            match tail.next(0.2):
                case LogBytes() as piece:
                    data += piece.data
                case Ended() | Lost():
                    break
                case _:
                    pass
    finally:
        tail.close()
    return Masker()(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
