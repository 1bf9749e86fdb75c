"""`launch run`: show one run from its local folder; the host is contacted only with --refresh."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from checks.vocabulary import LogVerdict
from launcher.cli import render
from launcher.cli.options import HostsFile, Json
from launcher.run.store import Run, RunStore

_WITHOUT_FAILURE = (LogVerdict.HEALTHY, LogVerdict.STOPPED, LogVerdict.STARTING)


def main(
    run: Annotated[str, typer.Argument(metavar="RUN", help="run id, a unique part of it, or `last`")] = "last",
    refresh: Annotated[bool, typer.Option("--refresh", help="read the current state from the host first")] = False,
    hosts_file: HostsFile = None,
    as_json: Json = False,
) -> int:
    """Show one run: plan, events, diagnosis and verdicts."""
    chosen = RunStore().find(run)
    if refresh:
        _refresh(chosen, hosts_file)
    if as_json:
        sys.stdout.write(json.dumps(everything(chosen), ensure_ascii=False) + "\n")
    else:
        _show(chosen)
    return 0


def everything(run: Run) -> dict[str, Any]:
    """Return all documents of a run as one."""
    parts = ("plan", "findings", "diagnosis", "validation", "server_info")
    return {"run": run.id, "folder": str(run.folder), **run.info, **{name: run.read(name) for name in parts}}


def _refresh(run: Run, hosts_file: Path | None) -> None:
    from launcher.cli.session import host_of_run, session
    from launcher.flows.launch.attach_run import refresh

    with session(host_of_run(run, hosts_file), quiet=True) as context:
        refresh(context, run)


def _show(run: Run) -> None:
    console, info, plan = render.out(), run.info, run.read("plan") or {}
    console.print(f"[bold]run[/]      {escape(run.id)}  [dim]{escape(str(run.folder))}[/]")
    console.print(f"[bold]state[/]    {render.state_text(info)}  {escape(str(info.get('reason', '')))}")
    profile = f"{info.get('profile')} ({info.get('digest')}) on {info.get('host')}, SGLang {info.get('engine')}"
    console.print(f"[bold]profile[/]  {escape(profile)}")
    if plan:
        console.print(f"[bold]plan[/]     {escape(plan['command_line'])}")
    for finding in run.read("findings") or []:
        console.print(f"{finding['severity']:<8} {finding['id']}: {finding['message']}", markup=False)
    for event in run.events():
        details = ", ".join(f"{k} {v}" for k, v in event.items() if k not in ("event", "at") and v not in ("", None))
        console.print(f"{event.get('at', 0):8.1f}s {event['event']}: {details[:200]}", markup=False)
    diagnosis, validation = run.read("diagnosis"), run.read("validation")
    if diagnosis:
        cause = diagnosis.get("cause") or ("none" if diagnosis.get("verdict") in _WITHOUT_FAILURE else "unknown")
        console.print(f"[bold]cause[/]    {cause}: {escape(diagnosis.get('sentence', ''))}")
    if validation:
        console.print(f"[bold]verdict[/]  {escape(validation['summary'])}")
        for verdict in validation["verdicts"]:
            console.print(f"         {verdict['outcome']:<12} {verdict['id']}: {verdict['message']}", markup=False)
