"""Diagnose a Run: its log together with everything the Run knows of the launch. Light: no SSH, no HTTP."""

from __future__ import annotations

from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from checks.after.slow_paths import decode_lines
from checks.during.diagnosis import OBSERVED
from checks.during.log.scan import Scanned
from checks.vocabulary import Diagnosis
from launcher.flows.diagnose.log_diagnosis import diagnose_log, diagnose_scanned
from launcher.flows.diagnose.log_view import LogView
from launcher.logfile import chunks
from launcher.run.store import Run, State


class Beside(Struct, frozen=True, kw_only=True):
    """What the host said besides our copy of the log; asked for by `diagnose run --host-evidence` and `--remote`."""

    kernel: tuple[str, ...] = ()  # records of the kernel's log in the time of the run
    notes: tuple[str, ...] = ()
    log: Scanned | None = None  # the log as its host holds it, instead of our copy


NOTHING = Beside()


def diagnose_run(run: Run, beside: Beside = NOTHING) -> Diagnosis:
    """The diagnosis of a run's log; its gist is kept in the Run."""
    plan = run.read("plan") or {}
    engine = str(plan.get("engine", ""))
    rest = "".join(f"\n{line}" for line in beside.kernel).encode()
    if beside.log is None:
        diagnosis = diagnose_log(chain(chunks(str(run.log)), [rest]), known(run), engine)
    else:
        diagnosis = diagnose_scanned(beside.log, rest, known(run), engine)
    notes = (*diagnosis.notes, *beside.notes, *(beside.kernel[:8] if diagnosis.cause is None else ()))
    diagnosis = stalled(run, replace(diagnosis, notes=notes))
    cause = diagnosis.cause
    gist = {
        "cause": cause.id if cause else None,
        "sentence": diagnosis.sentence,
        "healthy": diagnosis.healthy,
        "fingerprint": diagnosis.fingerprint,
        "ledger": [item.id for item in diagnosis.ledger],
    }
    run.write("diagnosis", gist)
    return diagnosis


def has_log(run: Run) -> bool:
    """Whether our copy of a run's log holds anything."""
    return run.log.exists() and run.log.stat().st_size > 0


def stalled(run: Run, diagnosis: Diagnosis) -> Diagnosis:
    """A run that stood still is not healthy because its log shows no failure: what its processes did is evidence."""
    event = stall_of(run)
    if event is None or diagnosis.cause is not None:
        return diagnosis if event is None else replace(diagnosis, notes=(*diagnosis.notes, _stall_note(event)))
    kind = "compile" if "compiling" in event["doing"] else "stopped" if "stopped by" in event["doing"] else "stall"
    if not (diagnosis.healthy or diagnosis.fingerprint.startswith(OBSERVED)):
        return replace(diagnosis, notes=(*diagnosis.notes, _stall_note(event)))
    return replace(
        diagnosis,
        healthy=False,
        sentence=f"unknown: {_stall_note(event)}",
        fingerprint=f"{kind}/{event['phase'] or 'import'}",
        phase=str(event["phase"]),
    )


def stall_of(run: Run) -> dict[str, Any] | None:
    """The last Stalled or Overdue event of a run after which nothing moved; None for one that went on."""
    if run.state not in (State.STALLED, State.TIMED_OUT):
        return None
    last = None
    for event in run.events():
        match event.get("event"):
            case "Stalled" | "Overdue":
                last = event
            case "Resumed" | "Ready":
                last = None
    return last and {"phase": "", "doing": "unknown", "last_line": "", **last}


def _stall_note(event: dict[str, Any]) -> str:
    length = (
        f"nothing moved for {event['silent']:.0f} s" if "silent" in event else f"longer than {event['limit']:.0f} s"
    )
    line = f"; last line: {event['last_line'][:160]}" if event["last_line"] else ""
    return f"{length} in phase `{event['phase'] or 'import'}`; its processes: {event['doing']}{line}"


def log_view(run: Run, fresh: bytes = b"") -> LogView:
    """What validation wants from a run's log. `fresh` is what came since our copy ends."""
    if not run.log.exists():
        return LogView()
    engine = str((run.read("plan") or {}).get("engine", ""))
    diagnosis = diagnose_log(chain(chunks(str(run.log)), [fresh]), known(run), engine)
    return LogView(ledger=diagnosis.ledger, decode=decode_lines(chain(chunks(str(run.log)), [fresh])))


def known(run: Run) -> dict[str, Any]:
    """What a Run knows besides its log, in the form of a facts file."""
    launch = run.read("launch") or {}
    observed = launch.get("observed") or ({"kind": "hang"} if stall_of(run) else None)
    return {**launch, "engine_version": launch.get("engine"), "observed": observed}
