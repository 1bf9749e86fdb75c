"""What a run's log on the host holds beyond our copy: read once, into memory, the copy untouched.

Another launcher may be following the same run and own the copy; `tail` is what keeps it.
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
    """The new bytes, secrets masked; empty when they cannot be had: a validation is worth having without them."""
    start = int((run.read("log.offset") or {"remote": 0})["remote"])
    try:
        seen = remote.look(transport, run)
    except LauncherError:
        return b""
    data, end = b"", clock.monotonic() + PATIENCE
    tail = Tail(transport, run, start)
    try:
        while start + len(data) < seen.log_bytes and clock.monotonic() < end:
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
