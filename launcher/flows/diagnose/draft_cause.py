"""Turn an unexplained failure into a proposed cause: a folder that its author completes by hand.

`checks.during.proposed_entry` makes the text of its files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from checks.during.diagnosis import diagnose
from checks.during.diagnosis_wording import headline
from checks.during.log.scan import scan
from checks.during.proposed_entry import NothingOpen, draft
from checks.during.reading import read
from launcher import knowledge_cache
from launcher.errors import UsageError
from launcher.flows.diagnose.run_diagnosis import known
from launcher.logfile import chunks
from launcher.run.store import Run
from launcher.secrets import Masker


def scaffold_run(run: Run, name: str, folder: Path) -> Path:
    """Write a proposed cause from a run's log and its launch facts. Returns the new folder; raises UsageError."""
    plan = run.read("plan") or {}
    return _scaffold(str(run.log), known(run), str(plan.get("engine", "")), name, folder)


def scaffold_log(log: str, name: str, folder: Path, engine: str = "") -> Path:
    """Write a proposed cause from a log file. Returns the new folder; raises UsageError."""
    return _scaffold(log, {}, engine, name, folder)


def _scaffold(log: str, facts: dict[str, Any], engine: str, name: str, folder: Path) -> Path:
    """Write the folder. Raises UsageError: invalid name, no unexplained failure, or the folder already exists."""
    target = folder / name
    if target.exists():
        raise UsageError(f"folder `{target}` already exists", hint="delete it first, or choose another name")
    index = knowledge_cache.index()
    reading = read(scan(chunks(log), index.words), index, facts, engine)
    try:
        files = draft(reading, name)
    except NothingOpen as error:
        message = f"the log contains no unexplained failure: {headline(diagnose(reading))}"
        raise UsageError(message, hint=str(error)) from error
    except ValueError as error:
        raise UsageError(str(error), hint="e.g. radix-cache-lost-after-retraction") from error
    mask = Masker()  # a log that no run has copied still echoes the secrets among the engine's arguments
    target.mkdir(parents=True)
    for file, text in files.items():
        (target / file).write_text("".join(mask(line) for line in text.splitlines(keepends=True)))
    return target
