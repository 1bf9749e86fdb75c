"""Diagnose a Run: its log together with everything the Run knows of the launch. Light: no SSH, no HTTP."""

from __future__ import annotations

from typing import Any

from checks.model import Diagnosis
from launcher.flows.diagnose import diagnose_log
from launcher.logfile import chunks
from launcher.runs import Run


def diagnose_run(run: Run) -> Diagnosis:
    """The diagnosis of a run's log; its gist is kept in the Run."""
    plan = run.read("plan") or {}
    diagnosis = diagnose_log(chunks(str(run.log)), known(run), str(plan.get("engine", "")))
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


def known(run: Run) -> dict[str, Any]:
    """What a Run knows besides its log, in the form of a facts file."""
    launch = run.read("launch") or {}
    return {**launch, "engine_version": launch.get("engine")}
