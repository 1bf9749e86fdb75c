"""Opens the FlowContext of a command: connection, run store, clock and screen, in one context manager."""

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
    """Open the context of a flow on a host, and close it when the block ends. `quiet` prints nothing, for --json."""
    visible = None if quiet else screen.Screen(render.err())
    try:
        with connected(host) as transport:
            yield FlowContext(
                transport=transport, store=RunStore(), clock=SystemClock(), observer=visible or screen.Quiet()
            )
    finally:
        if visible is not None:
            visible.close()


def host_of_run(run: Run, hosts_file: Path | None) -> Host:
    """Return the host of a stored run. Raises UsageError, ProfileError."""
    return host_of(run.host, hosts_file)
