"""`launch attach`: follow a run again."""

from __future__ import annotations

from typing import Annotated

import typer

from launcher.cli.options import HostsFile, Json
from launcher.cli.profile import finish
from launcher.cli.session import host_of_run, session
from launcher.flows.launch.attach_run import attach
from launcher.run.store import RunStore


def main(
    run: Annotated[str, typer.Argument(metavar="RUN", help="id, unique part of it, or `last`")] = "last",
    no_validate: Annotated[bool, typer.Option("--no-validate", help="stop at ready, do not probe")] = False,
    hosts_file: HostsFile = None,
    as_json: Json = False,
) -> int:
    """Follow a run again: after a lost connection, a closed laptop, a killed launcher."""
    chosen = RunStore().find(run)
    with session(host_of_run(chosen, hosts_file), quiet=as_json) as context:
        outcome = attach(context, chosen, probe=not no_validate)
    return finish(outcome, as_json=as_json)
