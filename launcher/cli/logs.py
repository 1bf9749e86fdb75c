"""`launch logs`: a run's log, from our copy; with -f it is followed on the host."""

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
    run: Annotated[str, typer.Argument(metavar="RUN", help="id, unique part of it, or `last`")] = "last",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on as the log grows")] = False,
    hosts_file: HostsFile = None,
) -> int:
    """Print a run's log; -f follows it."""
    found = RunStore().find(run)
    if found.log.exists():
        with found.log.open("rb") as log:
            while chunk := log.read(1 << 20):
                sys.stdout.buffer.write(chunk)
        sys.stdout.flush()
    elif not follow:
        sys.stderr.write(f"run {found.id} has no log: it is {found.state}\n")
    if not follow:
        return 0
    with connected(host_of(found.host, hosts_file)) as transport:
        copy = LogCopy(found, Masker())
        tail = Tail(transport, found, copy.offset)
        try:
            return _follow(tail, copy)
        finally:
            tail.close()


def _follow(tail: Tail, copy: LogCopy) -> int:
    while True:
        match tail.next(1.0):
            case LogBytes() as piece:
                for line in copy.feed(piece):
                    sys.stdout.write(line + "\n")
                sys.stdout.flush()
            case Ended() as end:
                sys.stdout.write("".join(line + "\n" for line in copy.finish()))
                sys.stderr.write(f"{end.state}, exit code {end.code}\n")
                return 0
            case Lost(final=True) as lost:
                sys.stderr.write(f"the connection is gone: {lost.reason}\n")
                return 4
            case _:
                pass
