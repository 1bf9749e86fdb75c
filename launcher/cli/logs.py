"""`launch logs`: print the local copy of a run's log; with -f, follow the log on the host."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from launcher.cli.options import HostsFile, connected, host_of
from launcher.run.frames import Ended, LogBytes
from launcher.run.log_copy import LogCopy, Lost, Tail
from launcher.run.store import RunStore
from launcher.secrets import Masker


def main(
    run: Annotated[str, typer.Argument(metavar="RUN", help="run id, a unique part of it, or `last`")] = "last",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="keep printing as the log grows")] = False,
    hosts_file: HostsFile = None,
) -> int:
    """Print the log of a run; -f follows it."""
    chosen = RunStore().find(run)
    if chosen.log.exists():
        with chosen.log.open("rb") as log:
            while chunk := log.read(1 << 20):
                sys.stdout.buffer.write(chunk)
        sys.stdout.flush()
    elif not follow:
        sys.stderr.write(f"run {chosen.id} ({chosen.state}) has no local log; try `launch logs -f {chosen.id}`\n")
    if not follow:
        return 0
    with connected(host_of(chosen.host, hosts_file)) as transport:
        copy = LogCopy(chosen, Masker())
        tail = Tail(transport, chosen, copy.offset)
        try:
            return _follow(tail, copy)
        finally:
            tail.close()


def _follow(tail: Tail, copy: LogCopy) -> int:
    while True:
        match tail.next(1.0):
            case LogBytes() as piece:
                _print(copy.feed(piece))
            case Ended() as end:
                _print(copy.finish())
                sys.stderr.write(f"{end.state}, exit code {end.code}\n")
                return 0
            case Lost(final=True) as lost:
                sys.stderr.write(f"connection lost: {lost.reason}\n")
                return 4
            case _:
                pass


def _print(lines: list[str]) -> None:
    """Print lines of the log as the bytes they are: a log need not be UTF-8."""
    sys.stdout.buffer.write("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()
