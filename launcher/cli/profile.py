"""`launch profile`: check, start, watch and validate a profile.

It parses options, runs the flow `launcher.flows.launch.launch`, prints the outcome and returns the exit code.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from checks.after.validation import as_dict
from launcher.cli import html, render, screen
from launcher.cli.diagnose import document
from launcher.cli.exits import Exit, of_state, of_validation
from launcher.cli.options import (
    Envs,
    HostName,
    HostsFile,
    Json,
    ProfilesFolder,
    Report,
    Sets,
    Unsets,
    check_output,
    host_of,
    seconds_of,
)
from launcher.cli.session import session
from launcher.errors import UsageError
from launcher.flows.launch.launch import LaunchOutcome, Options, launch
from launcher.profile.resolve import override, resolve, search_path
from launcher.run.state import State
from launcher.run.store import Run


def main(
    name: Annotated[str, typer.Argument(metavar="PROFILE", help="profile name, or a .yaml file")],
    host: HostName = "",
    sets: Sets = None,
    unsets: Unsets = None,
    envs: Envs = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="plan and check on the host; start nothing")] = False,
    no_validate: Annotated[bool, typer.Option("--no-validate", help="return at ready without probing")] = False,
    no_check: Annotated[bool, typer.Option("--no-check", help="start despite error findings")] = False,
    fast: Annotated[bool, typer.Option("--fast", help="skip the dry run inside the engine")] = False,
    soak: Annotated[str, typer.Option("--soak", help="keep probing for this long after validation: 30s, 10m, 1h")] = "",
    report: Report = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="return as soon as the process is running")] = False,
    profiles: ProfilesFolder = None,
    hosts_file: HostsFile = None,
    as_json: Json = False,
) -> int:
    """Check, start, watch and validate a profile on a host."""
    check_output("--html", report)
    if report is not None and (dry_run or no_validate or detach):
        raise UsageError("--html needs a validation: drop --dry-run, --no-validate or --detach")
    profile = override(resolve(name, search_path(profiles)), sets or [], unsets or [], envs or [])
    where = host_of(host, hosts_file)
    options = Options(
        dry_run=dry_run,
        detach=detach,
        validate=not no_validate and where.replay is None,
        ignore_findings=no_check,
        soak=seconds_of("--soak", soak),
        ask_engine=not (fast or no_check) and where.replay is None,
    )
    with session(where, quiet=as_json) as context:
        outcome = launch(context, profile, where, options)
    if where.replay is not None and not as_json:
        screen.recorded(render.err(), Run(id=where.replay.name, folder=where.replay).read("validation"))
    if report is not None:
        write_report(outcome, report)
    return finish(outcome, as_json=as_json)


def write_report(outcome: LaunchOutcome, place: Path) -> None:
    """Write the validation of a launch as an HTML page; without a validation, say so on standard error."""
    run, validation = outcome.run, outcome.validation
    if run is None or validation is None:
        sys.stderr.write(f"`{place}` was not written, because the run was not validated\n")
        return
    about = {"run": run.id, "profile": str(run.info.get("profile", "")), "host": run.host}
    place.write_text(html.page(as_dict(validation), about, run.expectations.baseline), "utf-8")


def finish(outcome: LaunchOutcome, *, as_json: bool) -> int:
    """Print the outcome of a launch and return the exit code."""
    if as_json:
        sys.stdout.write(json.dumps(outcome_json(outcome), ensure_ascii=False) + "\n")
    else:
        screen.outcome(render.out(), outcome)
    if outcome.state in (State.PLANNED, State.STARTING) or outcome.healthy:
        return Exit.OK
    if outcome.validation is not None and outcome.state is State.VALIDATED:
        return of_validation(outcome.validation.outcome)
    return of_state(outcome.state)


def outcome_json(outcome: LaunchOutcome) -> dict[str, Any]:
    """Return the JSON form of an outcome. It is a contract: keys are only ever added."""
    return {
        "run": outcome.run.id if outcome.run else None,
        "folder": str(outcome.run.folder) if outcome.run else None,
        "state": outcome.state,
        "healthy": outcome.healthy,
        "reason": outcome.reason,
        "diagnosis": document(outcome.diagnosis) if outcome.diagnosis else None,
        "validation": as_dict(outcome.validation) if outcome.validation else None,
    }
