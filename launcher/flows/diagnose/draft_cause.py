"""An unknown failure becomes the folder of a new cause, for its author to complete. The texts are
`checks.during.proposed_entry`."""

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
    """A draft out of a run's log and what the run knows of its launch."""
    plan = run.read("plan") or {}
    return _scaffold(str(run.log), known(run), str(plan.get("engine", "")), name, folder)


def scaffold_log(log: str, name: str, folder: Path, engine: str = "") -> Path:
    """A draft out of a log file."""
    return _scaffold(log, {}, engine, name, folder)


def _scaffold(log: str, facts: dict[str, Any], engine: str, name: str, folder: Path) -> Path:
    """Write the draft; its folder. Raises UsageError: a bad name, nothing to draft from, a folder that is there."""
    target = folder / name
    if target.exists():
        raise UsageError(f"{target} is already there", hint="choose another name")
    index = knowledge_cache.index()
    reading = read(scan(chunks(log), index.words), index, facts, engine)
    try:
        files = draft(reading, name)
    except NothingOpen as error:
        raise UsageError(f"nothing to draft from: {headline(diagnose(reading))}", hint=str(error)) from error
    except ValueError as error:
        raise UsageError(str(error), hint="e.g. radix-cache-lost-after-retraction") from error
    mask = Masker()  # a log that was not copied by a run still echoes what the engine was given
    target.mkdir(parents=True)
    for file, text in files.items():
        (target / file).write_text("".join(mask(line) for line in text.splitlines(keepends=True)))
    return target
