"""`launch stop`: end a run, or all runs of a host, and prove that nothing is left."""

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
from launcher.run.store import ACTIVE, RunStore


def main(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="id, unique part of it, or `last`: the newest active one")
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="every running run on the host")] = False,
    host: HostName = "",
    drain: Annotated[float, typer.Option("--drain", help="seconds to let requests finish")] = remote.DRAIN_SECONDS,
    hosts_file: HostsFile = None,
    as_json: Json = False,
) -> int:
    """Stop a run, or all runs of a host, and prove that nothing is left."""
    store = RunStore()
    if everything == bool(run):
        raise UsageError("which run?", hint="`launch stop RUN`, or `launch stop --all --host HOST`")
    if run == "last":
        run = newest_active(store)
    target = host_of(host or (store.find(run).host if run else ""), hosts_file)
    with session(target, quiet=as_json) as context:
        ids = [store.find(run).id] if run else running(context, target.work_dir)
        results = {run_id: _stop(context, run_id, target.work_dir, drain) for run_id in ids}
    return _show(results, target.name, as_json)


def newest_active(store: RunStore) -> str:
    """Id of the newest run that may still be running. Raises RunNotFound."""
    found = next((run.id for run in store.all() if run.state in ACTIVE), None)
    if found is None:
        raise RunNotFound(
            "no run is active", hint="`launch runs` lists all; `launch stop --all --host HOST` asks the host"
        )
    return found


def running(context: FlowContext, work_dir: str) -> list[str]:
    """Ids of the runs that run on the host, whoever started them."""
    return [seen.run for seen in remote.look_at_all(context.transport, work_dir) if seen.state == "running"]


def _stop(context: FlowContext, run_id: str, work_dir: str, drain: float) -> remote.Stopped:
    try:
        run = context.store.find(run_id)
    except RunNotFound:
        return stop_foreign(context, run_id, work_dir, drain=drain)
    return stop(context, run, drain=drain)


def _show(results: dict[str, remote.Stopped], host: str, as_json: bool) -> int:
    if as_json:
        rows = [{"run": name, "clean": item.clean, **to_builtins(item)} for name, item in results.items()]
        sys.stdout.write(json.dumps(rows) + "\n")
    elif not results:
        sys.stdout.write(f"nothing runs on {host}\n")
    else:
        for name, item in results.items():
            sys.stdout.write(f"{name}: {_words(item)}\n")
    return Exit.OK if all(item.clean for item in results.values()) else Exit.BAD


def _words(item: remote.Stopped) -> str:
    if item.state == "not-started":
        return "was never started; nothing to stop"
    how = {"": "stopped", "group": "stopped, with a second SIGTERM to what was left", "kill": "killed"}[item.forced]
    code = f", exit code {item.code}" if item.code is not None else ""
    if item.clean:
        return f"{how}{code}; no process, port or GPU memory is left"
    left = [f"pid {row['pid']} ({row['command'][:60]})" for row in item.survivors]
    left += [] if item.port_free else ["the port is still taken"]
    left += [f"GPU memory of pid {pid}" for pid in item.gpu_pids]
    return f"{how}{code}; NOT clean: {', '.join(left)}"
