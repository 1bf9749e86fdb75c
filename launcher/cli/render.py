"""The coloured views: findings, runs, diagnosis, trace. Progress goes to standard error, answers to standard output.

The rows of a diagnosis are made in `diagnose_view`, those of a trace in `trace_view`; a launch is shown by `screen`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from checks.vocabulary import Diagnosis, Finding, LogVerdict, Severity
from launcher.cli.diagnose_view import remedy_text, rows
from launcher.run.store import Run

if TYPE_CHECKING:  # only --trace pays for importing it
    from launcher.cli.trace_view import TraceRow

_LABEL = {
    "run": "bold",
    "cause": "bold",
    "why": "bold",
    "remedy": "bold cyan",
    "unresolved": "yellow",
}  # all other labels are dim
_FAINT = ("symptom", "ruled out", "note", "more")
_HOLDS = {"yes": "green", "no": "red", "unknown": "yellow"}
_SEVERITY = {
    Severity.ERROR: "[bold red]error[/]",
    Severity.WARNING: "[yellow]warning[/]",
    Severity.INFO: "[dim]info[/]",
}


def err() -> Console:
    """Return the console for progress, on standard error."""
    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def out() -> Console:
    """Return the console for answers, on standard output."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def findings(console: Console, items: Iterable[Finding]) -> None:
    """Print findings, each with its reason and up to three remedies; an info finding takes one line."""
    for finding in items:
        console.print(f"{_SEVERITY[finding.severity]}  [bold]{finding.id}[/]: {escape(finding.message)}")
        if finding.why and finding.severity is not Severity.INFO:
            console.print(f"         [dim]{escape(finding.why)}[/]")
        for remedy in finding.remedies[:3] if finding.severity is not Severity.INFO else ():
            console.print(f"         [cyan]remedy[/] {escape(remedy_text(remedy))}")


def runs_table(runs: Iterable[Run], now: float) -> Table:
    """Return the table of `launch runs`. `now` in seconds since the epoch."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("run", "state", "profile", "host", "engine", "age"):
        table.add_column(name, no_wrap=name != "profile")
    for run in runs:
        info = run.info
        cells = (escape(str(info.get(key, ""))) for key in ("profile", "host", "engine"))
        table.add_row(escape(run.id), state_text(info), *cells, age(now - float(info.get("created", now))))
    return table


def state_text(info: Mapping[str, object]) -> str:
    """Return the state of a run with its level, as rich markup."""
    state = str(info.get("state", "planned"))
    level = f" ({info['level']})" if state == "validated" and info.get("level") else ""
    colour = {"validated": "green", "ready": "green", "crashed": "red", "lost": "red", "refused": "red"}.get(
        state, "yellow"
    )
    return f"[{colour}]{state}{level}[/]"


def age(seconds: float) -> str:
    """Return a duration in its largest unit, e.g. `3 min`, `2 h` or `5 d`."""
    for limit, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= limit:
            return f"{seconds / limit:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def diagnosis(console: Console, found: Diagnosis, *, subject: str = "") -> None:
    """Print the rows of `diagnose_view` in colours."""
    for row in rows(found, subject=subject):
        text, place = escape(row.text), escape(row.place)
        if row.label == "cause" and found.cause is not None:
            text = text.replace(found.cause.id, f"[bold red]{found.cause.id}[/]", 1)
        elif row.label == "cause" and found.verdict is LogVerdict.UNKNOWN:
            text = f"[yellow]{text}[/]"
        if row.label in _FAINT:
            text = f"[dim]{text}[/]"
        if row.label:
            where = f" [dim]({place})[/]" if place else ""
            console.print(f"[{_LABEL.get(row.label, 'dim')}]{row.label:<10}[/] {text}{where}")
        else:
            console.print(f"           [dim]{place:>10}[/] {text}" if place else f"           [dim]-[/] {text}")


def trace(console: Console, trace_rows: Iterable[TraceRow]) -> None:
    """Print the rows of `trace_view` in colours."""
    for row in trace_rows:
        holds = f"[{_HOLDS[row.holds]}]{row.holds:<8}[/]" if row.holds else ""
        if row.label:
            console.print(" ".join(filter(None, (f"[bold]{row.label:<10}[/]", holds, escape(row.text)))))
        else:
            console.print(f"  {holds} {'  ' * row.depth}{escape(row.text)}")
