"""The sentences for events, states and stalls of a run. No decision depends on one of them.

The sentences of a diagnosis are in `checks.during.diagnosis_wording`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launcher.run.events import Activity, Stalled
from launcher.run.frames import Sample


def doing(activity: Activity, sample: Sample, cpu: float, read: int) -> str:
    """Describe in one line what the processes of a run do.

    `cpu` and `read` are the CPU seconds and the bytes read since the previous sample.
    """
    if activity is Activity.COMPILING:
        return f"compiling kernels ({', '.join(sample.compilers)})"
    waiting = sum(1 for row in sample.processes if row["state"] == "D")
    parts = [_count(len(sample.processes), "process"), f"{cpu:.1f} s of CPU time"]
    parts.append(f"{read / 1e6:.0f} MB read since the previous sample")
    if waiting:
        parts.append(f"{waiting} waiting for disk or driver")
    if sample.stopped:
        parts.append(f"{sample.stopped} stopped by a signal")
    return ", ".join(parts)


def stalled(event: Stalled) -> str:
    """Return the reason of a stalled state."""
    return (
        f"no progress for {event.silent:.0f} s in phase `{event.phase}`: no log line, no CPU time, no bytes read; "
        f"last line: {event.last_line[:160] or '(none)'}; {event.doing}"
    )


def stall_note(event: Mapping[str, Any]) -> str:
    """Describe a stored Stalled or Overdue event for a diagnosis."""
    length = f"no progress for {event['silent']:.0f} s" if "silent" in event else f"more than {event['limit']:.0f} s"
    line = f"; last line: {event['last_line'][:160]}" if event["last_line"] else ""
    return f"{length} in phase `{event['phase'] or 'import'}`; its processes: {event['doing']}{line}"


def stop_step(row: Mapping[str, Any]) -> str:
    """Describe a step of a stop that the program on the host reports."""
    match row["step"]:
        case "asked":
            return f"SIGTERM to the engine (pid {row['pid']}); it has up to {row['drain']:.0f} s to drain its requests"
        case "leaked-requests":
            leaked = _count(row["requests"], "request")
            owned = "it" if row["requests"] == 1 else "them"
            return (
                f"the engine is still counting {leaked} it already rejected; no scheduler has {owned}, so stopping now"
            )
        case "group":
            return f"SIGTERM to {_count(len(row['pids']), 'remaining process')}"
        case _:
            return f"SIGKILL to {_count(len(row['pids']), 'remaining process')}"


def exited(code: int | None) -> str:
    """Describe how the engine's process ended, and what its exit code does and does not mean."""
    return f"the engine exited with code {code}{_MEANING.get(code or 0, '')}"


def crashed_silently(code: int | None, log: str) -> str:
    """Describe a crash whose log shows no failure; `log` is the diagnosis of the log alone."""
    return f"{exited(code)}, but its log shows no cause ({log})"


def _count(number: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"1 {noun}" if number == 1 else f"{number} {plural}"


_MEANING = {
    2: " (its argument parser rejected the command line)",
    137: " (SIGKILL: the engine kills itself after any scheduler crash; this alone does not indicate the OOM killer)",
    139: " (SIGSEGV)",
    134: " (SIGABRT)",
    143: " (SIGTERM before the server was ready)",
}
