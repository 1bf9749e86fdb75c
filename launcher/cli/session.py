"""Opens what a flow works with: the connection, the run store, the clock, and the screen. One context manager."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from launcher.cli import render, screen
from launcher.cli.options import connected, host_of
from launcher.clock import SystemClock
from launcher.flows.launch.flow_context import FlowContext
from launcher.run.store import Run, RunStore
from launcher.transport.inventory import Host


@contextmanager
def session(host: Host, *, quiet: bool = False) -> Iterator[FlowContext]:
    """A flow's context on a host for as long as the block runs. `quiet`: nothing is shown, for --json."""
    shown = None if quiet else screen.Screen(render.err())
    try:
        with connected(host) as transport:
            yield FlowContext(
                transport=transport, store=RunStore(), clock=SystemClock(), observer=shown or screen.Quiet()
            )
    finally:
        if shown is not None:
            shown.close()


def host_of_run(run: Run, hosts_file: Path | None) -> Host:
    """The host of a stored run. Raises UsageError, ProfileError."""
    return host_of(run.host, hosts_file)
