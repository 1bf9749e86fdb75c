"""What happens to a run, in words: the sentences that events, states and stalls carry. No decision is taken on one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launcher.run.events import Activity, Stalled
from launcher.run.frames import Sample


def doing(activity: Activity, seen: Sample, cpu: float, read: int) -> str:
    """One line on what the processes of a run do.

    `cpu` and `read` are the CPU seconds and bytes since the sample before.
    """
    if activity is Activity.COMPILING:
        return f"compiling kernels ({', '.join(seen.compilers)})"
    waiting = sum(1 for row in seen.processes if row["state"] == "D")
    parts = [f"{len(seen.processes)} processes", f"{cpu:.1f} s of CPU", f"{read / 1e6:.0f} MB read since the last look"]
    if waiting:
        parts.append(f"{waiting} waiting for disk or driver")
    if seen.stopped:
        parts.append(f"{seen.stopped} stopped by a signal")
    return ", ".join(parts)


def stalled(event: Stalled) -> str:
    """Why a run is called stalled, for its state."""
    return (
        f"nothing moved for {event.silent:.0f} s in phase {event.phase}: no log line, no CPU time, no reading; "
        f"last line: {event.last_line[:160] or '(none)'}; {event.doing}"
    )


def stall_note(event: Mapping[str, Any]) -> str:
    """The same of a stored Stalled or Overdue event, for a diagnosis."""
    length = (
        f"nothing moved for {event['silent']:.0f} s" if "silent" in event else f"longer than {event['limit']:.0f} s"
    )
    line = f"; last line: {event['last_line'][:160]}" if event["last_line"] else ""
    return f"{length} in phase `{event['phase'] or 'import'}`; its processes: {event['doing']}{line}"


def stop_step(row: Mapping[str, Any]) -> str:
    """A step of a stop, as the program on the host reports it."""
    match row["step"]:
        case "asked":
            return f"SIGTERM to the engine (pid {row['pid']}), which drains its requests for up to {row['drain']:.0f} s"
        case "leaked-requests":
            what = "1 request" if row["requests"] == 1 else f"{row['requests']} requests"
            return f"the engine is still counting {what} it already rejected; no scheduler has it, so stopping now"
        case "group":
            return f"{len(row['pids'])} processes are left: SIGTERM to each"
        case _:
            return f"{len(row['pids'])} processes are left: SIGKILL"


def exited(code: int | None) -> str:
    """How the engine's process ended, and what its exit code does and does not mean."""
    return f"the engine exited with {code}{_MEANING.get(code or 0, '')}"


def crashed_silently(code: int | None, log: str) -> str:
    """A crash whose log shows no failure. `log`: what the log alone came to."""
    return f"{exited(code)}, and its log does not say why ({log})"


_MEANING = {
    2: " (its argument parser refused the command line)",
    137: " (SIGKILL: how the engine ends itself after any scheduler crash, not a sign of the OOM killer)",
    139: " (SIGSEGV)",
    134: " (SIGABRT)",
    143: " (SIGTERM before it was serving)",
}
