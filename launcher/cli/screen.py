"""Shows a launch while it runs and its outcome: the Observer of the flows, for people (Screen) and --json (Quiet).

On a terminal a status line at the bottom is updated; elsewhere, and with NO_COLOR, each fact is a plain line.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from checks.after.validation import Validation
from checks.vocabulary import Outcome, Verdict
from launcher.cli.render import diagnosis, findings
from launcher.flows.launch.launch import LaunchOutcome
from launcher.flows.launch.prepare import Prepared
from launcher.run.events import (
    Answering,
    Event,
    Exited,
    Impostor,
    LinkLost,
    Overdue,
    PhaseEntered,
    Progress,
    Ready,
    Resumed,
    Stalled,
    Started,
)  # fmt: skip
from launcher.run.state import State
from launcher.run.store import Run

_OUTCOME = {
    Outcome.PASS: "[green]✓ pass[/]",
    Outcome.FAIL: "[bold red]✗ FAIL[/]",
    Outcome.INCONCLUSIVE: "[yellow]? inconclusive[/]",
    Outcome.SKIP: "[dim]- skip[/]",
    Outcome.ERROR: "[magenta]! error[/]",
}
_HEALTH = {0: "connection refused", -1: "no answer in time", 200: "200", 503: "503, still starting"}


class Screen:
    """An Observer that prints a launch while it runs."""

    def __init__(self, console: Console, *, verbose: bool = False) -> None:
        self._console = console
        self._verbose = verbose
        self._status = console.status("") if console.is_terminal else None
        self._phase = ("", 0.0)
        self._announced = ""

    def close(self) -> None:
        """Remove the status line."""
        if self._status is not None:
            self._status.stop()

    def prepared(self, prepared: Prepared, run: Run | None) -> None:
        """Print plan and findings, before the start."""
        plan, console = prepared.plan, self._console
        console.print(
            f"[bold]profile[/]  {escape(plan.profile)} ({plan.digest})  [dim]{escape(prepared.profile.path)}[/]"
        )
        console.print(f"[bold]host[/]     {escape(plan.host)}: {host_line(prepared)}")
        console.print(f"[bold]plan[/]     {escape(shlex.join(plan.argv))}")
        if run is not None:
            console.print(f"[bold]run[/]      {escape(run.id)}  [dim]{escape(str(run.folder))}[/]")
        for finding, accepted in prepared.accepted:
            console.print(f"[dim]accepted[/] {finding.id}: {escape(accepted.reason)}")
        findings(console, prepared.findings)

    def event(self, event: Event) -> None:
        """Print an event with its time in seconds since the start, or update the status line."""
        match event:
            case Progress():
                self._move(f"{event.text} {event.fraction:.0%}" if event.fraction is not None else event.text)
            case PhaseEntered():
                self._finish_phase(event.at)
                self._phase = (event.title, event.at)
                self._move(event.title)
            case Ready():
                self._finish_phase(event.at)
                self._line(event.at, f"[green]ready[/]: {escape('; '.join(event.evidence))}")
            case Answering():
                if self._verbose or event.status not in (0, 503):
                    self._line(event.at, f"/health: {_HEALTH.get(event.status, event.status)}")
            case _:
                self._line(event.at, _event_text(event))

    def verdict(self, verdict: Verdict) -> None:
        """Print the verdict of a probe; up to three lines of evidence unless it passed or was skipped."""
        if self._announced != "probes":
            self._announced = "probes"
            self._console.print("[bold]probes[/]")
        words = f"{escape(verdict.id)}: {escape(verdict.message)}"
        self._console.print(f"  {_OUTCOME[verdict.outcome]} {words} [dim]{verdict.seconds:.1f} s[/]")
        if verdict.outcome is not Outcome.PASS and verdict.outcome is not Outcome.SKIP:
            for item in verdict.evidence[:3]:
                self._console.print(f"      [dim]{escape(f'{item.time} {item.text}'.strip()[:300])}[/]")

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(f"[dim]{escape(text)}[/]")

    def _finish_phase(self, at: float) -> None:
        title, since = self._phase
        if title:
            self._line(at, f"{escape(title)} [dim]took {at - since:.1f} s[/]")
        self._phase = ("", at)

    def _line(self, at: float, text: str) -> None:
        self._console.print(f"[dim]{at:7.1f}s[/] {text}")

    def _move(self, text: str) -> None:
        if self._status is not None:
            self._status.update(escape(text))
            self._status.start()


class Quiet:
    """An Observer that prints nothing, for --json."""

    def prepared(self, prepared: Prepared, run: Run | None) -> None: ...

    def event(self, event: Event) -> None: ...

    def verdict(self, verdict: Verdict) -> None: ...

    def say(self, text: str) -> None: ...


def outcome(console: Console, ended: LaunchOutcome) -> None:
    """Print the outcome of a launch: verdict, diagnosis, and the next commands."""
    run = ended.run
    word = {State.VALIDATED: "verdict", State.READY: "ready"}.get(ended.state, str(ended.state))
    colour = "green" if ended.healthy else "yellow" if ended.state in (State.PLANNED, State.STARTING) else "red"
    console.print(f"[bold {colour}]{word:<8}[/] {escape(ended.reason)}")
    if ended.diagnosis is not None:
        diagnosis(console, ended.diagnosis)
    for line in next_steps(ended, run):
        console.print(f"[dim]next[/]     {escape(line)}")


def recorded(console: Console, document: Mapping[str, Any] | None) -> None:
    """Print the recorded verdicts of a replayed run."""
    if document is None:
        return
    console.print("[bold]probes[/]   (recorded)")
    for item in document["verdicts"]:
        console.print(f"  {_OUTCOME[Outcome(item['outcome'])]} {escape(item['id'])}: {escape(item['message'])}")
    console.print(f"[bold]verdict[/]  {escape(document['summary'])} [dim](recorded)[/]")


def validation(console: Console, result: Validation) -> None:
    """Print the verdict of a validation and its unresolved warnings."""
    colour = "green" if result.outcome is Outcome.PASS else "red" if result.outcome is Outcome.FAIL else "yellow"
    console.print(f"[bold {colour}]verdict[/]  {escape(result.summary)}")
    for item in result.open_warnings:
        clears = f", cleared by {' or '.join(item.clears)}" if item.clears else ""
        console.print(f"[yellow]warning[/]  {item.id}: {escape(item.title)} [dim](unresolved{clears})[/]")


def next_steps(ended: LaunchOutcome, run: Run | None) -> list[str]:
    """Return the commands to paste next."""
    if run is None:
        return []
    match ended.state:
        case State.REFUSED:
            return [f"launch run {run.id}"]
        case State.STOPPED:
            return [f"launch logs {run.id}"]
        case State.CRASHED | State.LOST:
            return ["diagnose last-crash", f"launch logs {run.id}"]
        case State.STARTING | State.STALLED | State.TIMED_OUT:
            return [f"launch attach {run.id}", f"launch logs -f {run.id}", f"launch stop {run.id}"]
        case _:
            wrong = ended.validation is not None and ended.validation.outcome is Outcome.FAIL
            explain = [f"diagnose run {run.id}"] if wrong else []
            return [*explain, f"launch logs -f {run.id}", f"launch validate {run.id}", f"launch stop {run.id}"]


def host_line(prepared: Prepared) -> str:
    """Return GPUs and SGLang release of the host on one line."""
    gpu, launch = prepared.launch.gpu, prepared.launch
    if gpu.get("name"):
        link = "" if gpu.get("nvlink") is None else ", NVLink" if gpu["nvlink"] else ", PCIe"
        gpus = f"{gpu['count']}× {gpu['name']} (SM{gpu.get('sm', '?')}, {gpu.get('vram_gb', '?')} GB{link})"
    else:
        gpus = "no GPU"
    return escape(f"{gpus}, SGLang {launch.engine}")


def _event_text(event: Event) -> str:
    match event:
        case Started():
            text = f"started, pid {event.pid}"
        case Stalled():
            doing = escape(event.doing)
            text = f"[bold red]stalled[/] in {event.phase}: no progress for {event.silent:.0f} s; {doing}"
        case Overdue():
            text = f"[yellow]{event.phase} takes longer than {event.limit:.0f} s[/]: {escape(event.doing)}"
        case Resumed():
            text = "progressing again"
        case Impostor():
            text = f"[bold red]a server answers, but it is not proven to be this run[/]: {escape(event.reason)}"
        case LinkLost():
            text = f"[yellow]connection lost[/] ({escape(event.reason)}); the run continues, reconnecting"
        case Exited(state="vanished"):
            text = "[bold red]the process disappeared[/] without an exit code"
        case Exited():
            text = f"[bold red]exited with {event.code}[/]"
        case _:
            text = escape(str(event))
    return text
