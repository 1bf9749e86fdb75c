"""Every human-readable view. Progress goes to standard error, answers to standard output.

On a terminal one line at the bottom moves; elsewhere, and with NO_COLOR, the same facts come as plain lines.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from checks.model import Diagnosis, Finding, Remedy, Severity
from launcher.runs import Run, State

_SEVERITY = {
    Severity.ERROR: "[bold red]error[/]",
    Severity.WARNING: "[yellow]warning[/]",
    Severity.INFO: "[dim]info[/]",
}


def err() -> Console:
    """Progress."""
    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def out() -> Console:
    """Answers."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def findings(console: Console, items: Iterable[Finding]) -> None:
    """Findings with their remedies."""
    for item in items:
        console.print(f"{_SEVERITY[item.severity]}  [bold]{item.id}[/]: {escape(item.message)}")
        if item.why and item.severity is not Severity.INFO:
            console.print(f"         [dim]{escape(item.why)}[/]")
        for remedy in item.remedies[:3] if item.severity is not Severity.INFO else ():
            console.print(f"         [cyan]remedy[/] {escape(remedy_text(remedy))}")


def remedy_text(remedy: Remedy) -> str:
    """A remedy on one line: what to set, unset, install; then why."""
    parts = [f"{name}: {_value(value)}" for name, value in remedy.set.items()]
    parts += [f"without {name}" for name in remedy.unset]
    parts += [f"env {name}={value}" for name, value in remedy.env.items()]
    parts += [f"without env {name}" for name in remedy.unset_env]
    parts += [remedy.install] if remedy.install else []
    parts += [f"upgrade {name} to {wanted}" for name, wanted in remedy.upgrade.items()]
    text = ", ".join(parts)
    return f"{text}  ({remedy.text})" if text and remedy.text else text or remedy.text


def runs_table(runs: Iterable[Run], now: float) -> Table:
    """`launch runs`."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("run", "state", "profile", "host", "engine", "age"):
        table.add_column(name, no_wrap=name != "profile")
    for run in runs:
        info = run.info
        cells = (str(info.get(key, "")) for key in ("profile", "host", "engine"))
        table.add_row(run.id, state_text(info), *cells, age(now - float(info.get("created", now))))
    return table


def state_text(info: Mapping[str, object]) -> str:
    """State of a run with its outcome."""
    state = str(info.get("state", "planned"))
    extra = f" ({info['level']})" if state == "validated" and info.get("level") else ""
    colour = {"validated": "green", "ready": "green", "crashed": "red", "lost": "red", "refused": "red"}.get(
        state, "yellow"
    )
    return f"[{colour}]{state}{extra}[/]"


def age(seconds: float) -> str:
    """3 min, 2 h, 5 d."""
    for limit, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= limit:
            return f"{seconds / limit:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def _value(value: object) -> str:
    if value is True:
        return "true"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def diagnosis(console: Console, found: Diagnosis, state: State | None = None) -> None:
    """A diagnosis for people."""
    if found.cause is not None:
        console.print(f"[bold]cause[/]    [bold red]{found.cause.id}[/]: {escape(found.sentence)}")
    elif found.healthy and state is not State.CRASHED:
        console.print(f"[bold]cause[/]    none: {escape(found.sentence)}")
    else:
        console.print(
            f"[bold]cause[/]    [yellow]unknown[/]: {escape(found.sentence)}  [dim]{escape(found.fingerprint)}[/]"
        )
    for item in (found.cause.evidence if found.cause else ())[:6]:
        place = f"line {item.line}" + (f" {item.rank}" if item.rank else "") + (f" {item.time}" if item.time else "")
        console.print(f"         [dim]{place:>10}[/] {escape(item.text[:400])}")
    if found.why:
        console.print(f"[bold]why[/]      {escape(found.why)}")
    for remedy in found.remedies:
        console.print(f"[bold cyan]remedy[/]   {escape(remedy_text(remedy))}")
    for match in found.symptoms[:4]:
        console.print(f"[dim]symptom  {escape(match.title)} (line {match.line})[/]")
    if found.dismissed:
        harmless = "; ".join(f"{match.title} (line {match.line})" for match in found.dismissed[:5])
        console.print(f"[dim]not it   {escape(harmless)}[/]")
    for match in found.ledger:
        console.print(f"[yellow]open[/]     {escape(match.title)} [dim](line {match.line})[/]")
    for note in found.notes:
        console.print(f"[dim]note     {escape(note)}[/]")
    if found.cause is not None:
        console.print(f"[dim]more     launch explain {found.cause.id}[/]")
