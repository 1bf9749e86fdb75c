"""`diagnose last-crash` and `diagnose run`: explain a Run, offline, from its folder."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from launcher.cli.diagnose import document, markdown
from launcher.cli.exits import Exit
from launcher.errors import RunNotFound
from launcher.runs import Run, RunStore, State


def last_crash(
    host: Annotated[str, typer.Option("--host", "-H", help="only runs on this host")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="for an issue or a chat")] = False,
    apply: Annotated[str, typer.Option("--apply", help="write the profile with the first remedy under this name")] = "",
) -> int:
    """Explain the last run that did not end well."""
    found = RunStore().last_crash(host or None)
    if found is None:
        raise RunNotFound(
            "no run ended badly" + (f" on {host}" if host else ""), hint="`diagnose log FILE` explains any log"
        )
    return explain(found, as_json=as_json, as_markdown=as_markdown, apply=apply)


def run(
    name: Annotated[str, typer.Argument(metavar="RUN", help="id, unique part of it, `last`, or a run's folder")],
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="for an issue or a chat")] = False,
    apply: Annotated[str, typer.Option("--apply", help="write the profile with the first remedy under this name")] = "",
) -> int:
    """Explain a run."""
    return explain(RunStore().find(name), as_json=as_json, as_markdown=as_markdown, apply=apply)


def explain(found: Run, *, as_json: bool, as_markdown: bool, apply: str) -> int:
    """Diagnose a run's log and show it."""
    if not found.log.exists() or found.log.stat().st_size == 0:
        return _without_log(found)
    from launcher.flows.diagnosing import diagnose_run

    diagnosis = diagnose_run(found)
    if as_json:
        sys.stdout.write(json.dumps({"run": found.id, **document(diagnosis)}, ensure_ascii=False) + "\n")
    elif as_markdown:
        sys.stdout.write(markdown(diagnosis, found.id))
    else:
        from launcher.cli import render

        info = found.info
        console = render.out()
        console.print(
            f"[bold]run[/]      {found.id}: {render.state_text(info)}, "
            f"profile {info.get('profile')} on {info.get('host')}, SGLang {info.get('engine')}"
        )
        render.diagnosis(console, diagnosis, found.state)
    if apply:
        from launcher.cli.patch import write_patched

        sys.stderr.write(write_patched(found, diagnosis, apply) + "\n")
    return Exit.OK if diagnosis.healthy else Exit.BAD if diagnosis.cause else Exit.INCONCLUSIVE


def _without_log(found: Run) -> int:
    info = found.info
    sys.stdout.write(f"{found.id} is {info.get('state')}: {info.get('reason') or 'it left no log'}\n")
    for finding in found.read("findings") or []:
        sys.stdout.write(f"  {finding['severity']} {finding['id']}: {finding['message']}\n")
    return Exit.REFUSED if found.state is State.REFUSED else Exit.INCONCLUSIVE
