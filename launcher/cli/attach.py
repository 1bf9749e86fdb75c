"""`launch attach`: follow a run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from launcher.cli import render, screen
from launcher.cli.options import HostsFile, Json, connected, host_of
from launcher.cli.profile import finish
from launcher.clock import SystemClock
from launcher.flows.launch.attach_run import attach
from launcher.flows.launch.launch import Desk, Observer
from launcher.run.store import RunStore


def main(
    run: Annotated[str, typer.Argument(metavar="RUN", help="id, unique part of it, or `last`")] = "last",
    no_validate: Annotated[bool, typer.Option("--no-validate", help="stop at ready, do not probe")] = False,
    hosts_file: HostsFile = None,
    as_json: Json = False,
) -> int:
    """Follow a run again: after a lost connection, a closed laptop, a killed launcher."""
    found = RunStore().find(run)
    observer: Observer = screen.Quiet() if as_json else screen.Screen(render.err())
    with connected(host_of(str(found.info.get("host", "")), Path(hosts_file) if hosts_file else None)) as transport:
        desk = Desk(transport=transport, store=RunStore(), clock=SystemClock(), observer=observer)
        try:
            outcome = attach(desk, found, probes=not no_validate)
        finally:
            if isinstance(observer, screen.Screen):
                observer.close()
    return finish(outcome, as_json=as_json)
