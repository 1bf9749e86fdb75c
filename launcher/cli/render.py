"""Every human-readable view. Progress goes to standard error, answers to standard output.

On a terminal one line at the bottom moves; elsewhere, and with NO_COLOR, the same facts come as plain lines.
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

if TYPE_CHECKING:  # a trace loads what nothing else needs
    from launcher.cli.trace_view import TraceRow

_LABEL = {
    "run": "bold",
    "cause": "bold",
    "why": "bold",
    "remedy": "bold cyan",
    "unresolved": "yellow",
}  # the others are dim
_FAINT = ("symptom", "ruled out", "note", "more")
_HOLDS = {"yes": "green", "no": "red", "unknown": "yellow"}
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


def diagnosis(console: Console, found: Diagnosis, *, subject: str = "") -> None:
    """A diagnosis for people: the rows of `diagnose_view` in colours."""
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
            console.print(f"           [dim]{place:>10}[/] {text}")


def trace(console: Console, found: Iterable[TraceRow]) -> None:
    """A trace for people: the rows of `trace_view` in colours."""
    for row in found:
        holds = f"[{_HOLDS[row.holds]}]{row.holds:<8}[/]" if row.holds else ""
        if row.label:
            console.print(" ".join(filter(None, (f"[bold]{row.label:<10}[/]", holds, escape(row.text)))))
        else:
            console.print(f"  {holds} {'  ' * row.depth}{escape(row.text)}")
