"""`launch runs`: list the runs that were launched from this machine, newest first."""

from __future__ import annotations

import json
import sys
from itertools import islice
from typing import Annotated

import typer

from launcher.cli.options import Json
from launcher.clock import SystemClock
from launcher.run.store import RunStore


def main(
    count: Annotated[int, typer.Option("--count", "-n", min=0, help="number of runs to list")] = 20,
    host: Annotated[str, typer.Option("--host", "-H", help="only runs on this host")] = "",
    as_json: Json = False,
) -> int:
    """List runs, newest first."""
    runs = list(islice((run for run in RunStore().all() if host in ("", run.info.get("host"))), count))
    if as_json:
        sys.stdout.write(json.dumps([{"run": run.id, **run.info} for run in runs]) + "\n")
        return 0
    if not runs:
        sys.stderr.write(
            f"no runs on `{host}`; `launch runs` lists all\n"
            if host
            else "no runs yet; start one with `launch profile NAME --host HOST`\n"
        )
        return 0
    if not sys.stdout.isatty():
        for run in runs:
            info = run.info
            fields = (run.id, *(str(info.get(key, "")) for key in ("state", "profile", "host", "engine", "level")))
            sys.stdout.write("\t".join(fields) + "\n")
        return 0
    from launcher.cli import render

    render.out().print(render.runs_table(runs, SystemClock().now().timestamp()))
    return 0
