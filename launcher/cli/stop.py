"""`launch stop`: stop a run or all runs on a host, and verify that no process, port or GPU memory is left."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from msgspec import to_builtins

from launcher.cli.exits import Exit
from launcher.cli.options import HostName, HostsFile, Json, host_of
from launcher.cli.session import session
from launcher.errors import RunNotFound, UsageError
from launcher.flows.launch.flow_context import FlowContext
from launcher.flows.launch.stop_runs import stop, stop_foreign
from launcher.run import remote
from launcher.run.state import ACTIVE
from launcher.run.store import RunStore


def main(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="run id, a unique part of it, or `last` for the newest active run")
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="stop every running run on the host")] = False,
    host: HostName = "",
    drain: Annotated[float, typer.Option("--drain", help="seconds to wait for requests")] = remote.DRAIN_SECONDS,
    hosts_file: HostsFile = None,
    as_json: Json = False,
) -> int:
    """Stop a run or all runs on a host, and verify that no process, port or GPU memory is left."""
    store = RunStore()
    if everything == bool(run):
        message = "RUN and --all exclude each other" if run else "no run given"
        raise UsageError(message, hint="launch stop RUN, or launch stop --all --host HOST")
    if run == "last":
        run = newest_active(store)
    target = host_of(host or (store.find(run).host if run else ""), hosts_file)
    with session(target, quiet=as_json) as context:
        ids = [store.find(run).id] if run else running(context, target.work_dir)
        results = {run_id: _stop(context, run_id, target.work_dir, drain) for run_id in ids}
    return _show(results, target.name, as_json)


def newest_active(store: RunStore) -> str:
    """Return the id of the newest run that may still be running. Raises RunNotFound."""
    run_id = next((run.id for run in store.all() if run.state in ACTIVE), None)
    if run_id is None:
        raise RunNotFound(
            "no active run", hint="`launch runs` lists all runs; `launch stop --all --host HOST` looks on the host"
        )
    return run_id


def running(context: FlowContext, work_dir: str) -> list[str]:
    """Return the ids of all runs on the host that are running, including those of other users of the work folder."""
    return [look.run for look in remote.look_at_all(context.transport, work_dir) if look.state == "running"]


def _stop(context: FlowContext, run_id: str, work_dir: str, drain: float) -> remote.Stopped:
    try:
        run = context.store.find(run_id)
    except RunNotFound:
        return stop_foreign(context, run_id, work_dir, drain=drain)
    return stop(context, run, drain=drain)


def _show(results: dict[str, remote.Stopped], host: str, as_json: bool) -> int:
    if as_json:
        rows = [{"run": name, "clean": stopped.clean, **to_builtins(stopped)} for name, stopped in results.items()]
        sys.stdout.write(json.dumps(rows) + "\n")
    elif not results:
        sys.stdout.write(f"no run is running on {host}\n")
    else:
        for name, stopped in results.items():
            sys.stdout.write(f"{name}: {_words(stopped)}\n")
    return Exit.OK if all(stopped.clean for stopped in results.values()) else Exit.BAD


def _words(stopped: remote.Stopped) -> str:
    if stopped.state == "not-started":
        return "was never started, so there is nothing to stop"
    how = {"": "stopped", "group": "stopped by a second SIGTERM", "kill": "killed"}[stopped.forced]
    code = f", exit code {stopped.code}" if stopped.code is not None else ""
    if stopped.clean:
        return f"{how}{code}; no process, port or GPU memory is left"
    left = [f"pid {row['pid']} ({row['command'][:60]})" for row in stopped.survivors]
    left += [] if stopped.port_free else ["the port is still in use"]
    left += [f"GPU memory of pid {pid}" for pid in stopped.gpu_pids]
    return f"{how}{code}; NOT clean, left over: {', '.join(left)}"
