"""Diagnose a Run from its log and everything the Run stores about its launch. Needs neither SSH nor HTTP."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from checks.after.observation import observed_kind
from checks.after.slow_paths import decode_lines
from checks.during.log.scan import Scanned
from checks.engine.flag_schema import load
from checks.vocabulary import Diagnosis, Finding, LogVerdict
from launcher.flows.diagnose.log_diagnosis import diagnose_log, diagnose_scanned
from launcher.flows.diagnose.log_view import LogView
from launcher.logfile import chunks
from launcher.run import run_wording
from launcher.run.events import Activity
from launcher.run.state import State
from launcher.run.store import Run

_STALL_KIND = {Activity.COMPILING: "compile", Activity.STOPPED: "stopped"}  # in a fingerprint; by default: stall


class HostEvidence(Struct, frozen=True, kw_only=True):
    """What the host reports in addition to the local copy of the log, for `--host-evidence` or `--remote`."""

    kernel: tuple[str, ...] = ()  # records of the kernel log during the run
    notes: tuple[str, ...] = ()
    log: Scanned | None = None  # the run's log, filtered on its host; replaces the local copy


NO_EVIDENCE = HostEvidence()


def diagnose_run(run: Run, evidence: HostEvidence = NO_EVIDENCE) -> Diagnosis:
    """Return the diagnosis of a run's log, and store a summary of it in the Run."""
    engine = str((run.read("plan") or {}).get("engine", ""))
    kernel = "".join(f"\n{line}" for line in evidence.kernel).encode()
    if evidence.log is None:
        diagnosis = diagnose_log(chain(chunks(str(run.log)), [kernel]), known(run), engine, partial(findings_of, run))
    else:
        diagnosis = diagnose_scanned(evidence.log, kernel, known(run), engine, partial(findings_of, run))
    notes = (*diagnosis.notes, *evidence.notes, *(evidence.kernel[:8] if diagnosis.cause is None else ()))
    diagnosis = _placed(run, of_run(run, replace(diagnosis, notes=notes)))
    run.write("diagnosis", _gist(diagnosis))
    return diagnosis


def findings_of(run: Run) -> tuple[Finding, ...]:
    """Return the findings before the start that the Run stores; none for a run of an older version."""
    with suppress(msgspec.ValidationError):
        return msgspec.convert(run.read("findings") or (), tuple[Finding, ...])
    return ()


def _placed(run: Run, diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis with the position of each suspect in the profile that was launched."""
    if not diagnosis.suspects:
        return diagnosis
    profile, schema = run.read("profile") or {}, load(str(diagnosis.engine or ""))
    places = {f"env.{name}": item.get("where", "") for name, item in (profile.get("env") or {}).items()}
    for name, item in (profile.get("flags") or {}).items():
        places[f"flag.{schema.canonical(name) or name}"] = item.get("where", "")
    placed = (replace(item, where=places.get(item.setting, item.where)) for item in diagnosis.suspects)
    return replace(diagnosis, suspects=tuple(placed))


def of_run(run: Run, diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis corrected by how the run ended: a crash or stall is a failure, whatever the log shows."""
    event = stall_of(run)
    if event is not None:
        return _stalled(event, diagnosis)
    if run.state is State.CRASHED and diagnosis.verdict not in (LogVerdict.CAUSE, LogVerdict.UNKNOWN):
        sentence = run_wording.crashed_silently(run.info.get("exit"), diagnosis.sentence)
        return replace(diagnosis, verdict=LogVerdict.UNKNOWN, sentence=sentence)
    return diagnosis


def has_log(run: Run) -> bool:
    """Return whether the local copy of the run's log exists and is not empty."""
    return run.log.exists() and run.log.stat().st_size > 0


def stall_of(run: Run) -> dict[str, Any] | None:
    """Return the last Stalled or Overdue event of a run that made no progress after it; None if the run continued."""
    if run.state not in (State.STALLED, State.TIMED_OUT):
        return None
    last = None
    for event in run.events():
        match event.get("event"):
            case "Stalled" | "Overdue":
                last = event
            case "Resumed" | "Ready":
                last = None
    return last and {"phase": "", "doing": "unknown", "last_line": "", "activity": Activity.UNKNOWN, **last}


def log_view(run: Run, fresh: bytes = b"") -> LogView:
    """Return what validation needs from a run's log. `fresh`: bytes of the log after the end of the local copy."""
    if not run.log.exists():
        return LogView()
    engine = str((run.read("plan") or {}).get("engine", ""))
    diagnosis = diagnose_log(chain(chunks(str(run.log)), [fresh]), known(run), engine)
    return LogView(ledger=diagnosis.ledger, decode=decode_lines(chain(chunks(str(run.log)), [fresh])))


def known(run: Run) -> dict[str, Any]:
    """Return what a Run stores about its launch, without the log, in the form of a facts file."""
    launch = run.read("launch") or {}
    observed = launch.get("observed") or ({"kind": "hang"} if stall_of(run) else _failed_probes(run))
    return {**launch, "engine_version": launch.get("engine"), "observed": observed}


def _failed_probes(run: Run) -> dict[str, Any] | None:
    """Return the observation of a server that works and answers wrongly or slowly; None if its probes passed."""
    verdicts = (run.read("validation") or {}).get("verdicts") or []
    kind = observed_kind(verdicts) if run.state in (State.VALIDATED, State.READY, State.STOPPED) else ""
    return {"kind": kind} if kind else None


def _stalled(event: dict[str, Any], diagnosis: Diagnosis) -> Diagnosis:
    """Report what the processes were doing: as the headline if the log shows no failure, otherwise as a note."""
    note = run_wording.stall_note(event)
    if diagnosis.verdict in (LogVerdict.CAUSE, LogVerdict.UNKNOWN) and not diagnosis.observed:
        return replace(diagnosis, notes=(*diagnosis.notes, note))
    return replace(
        diagnosis,
        verdict=LogVerdict.UNKNOWN,
        sentence=note,
        fingerprint=f"{_STALL_KIND.get(event['activity'], 'stall')}/{event['phase'] or 'import'}",
        phase=str(event["phase"]),
    )


def _gist(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "cause": diagnosis.cause.id if diagnosis.cause else None,
        "verdict": diagnosis.verdict,
        "sentence": diagnosis.sentence,
        "healthy": diagnosis.healthy,
        "fingerprint": diagnosis.fingerprint,
        "ledger": [item.id for item in diagnosis.ledger],
        "suspects": [item.setting for item in diagnosis.suspects],
    }
