"""`launch attach`: follow a run that was started earlier, and validate it once it is ready."""

from __future__ import annotations

from typing import Annotated

import typer

from launcher.cli.options import HostsFile, Json
from launcher.cli.profile import finish
from launcher.cli.session import host_of_run, session
from launcher.flows.launch.attach_run import attach
from launcher.run.store import RunStore


def main(
    run: Annotated[str, typer.Argument(metavar="RUN", help="run id, a unique part of it, or `last`")] = "last",
    no_validate: Annotated[bool, typer.Option("--no-validate", help="return at ready without probing")] = False,
    hosts_file: HostsFile = None,
    as_json: Json = False,
) -> int:
    """Follow a run again, e.g. after a lost connection, a closed laptop or a killed launcher."""
    chosen = RunStore().find(run)
    with session(host_of_run(chosen, hosts_file), quiet=as_json) as context:
        outcome = attach(context, chosen, probe=not no_validate)
    return finish(outcome, as_json=as_json)
