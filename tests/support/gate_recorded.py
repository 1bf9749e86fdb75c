"""Creates recorded runs for tests, in the form that a launch writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launcher.run.state import State
from launcher.run.store import Run

LOG = """\
[2026-11-29 12:00:00] server_args=ServerArgs(model_path='/models/empty', port=30000)
[2026-11-29 12:00:01] Scheduler hit an exception: Traceback (most recent call last):
  File "/venv/sglang/srt/managers/scheduler.py", line 3000, in run_scheduler_process
    scheduler = Scheduler(server_args)
  File "/venv/sglang/srt/model_loader/loader.py", line 500, in load_model
    raise RuntimeError(message)
RuntimeError: Cannot find any model weights with `/models/empty`

[2026-11-29 12:00:01] Received sigquit from a child process. It usually means the child failed.
"""
LAUNCH: dict[str, Any] = {
    "engine": "0.5.20", "flags": {"model-path": "/models/empty"}, "env": {},
    "gpu": {"name": "H100", "sm": 90, "count": 1},
    "model": {}, "draft_model": {}, "packages": {}, "host": {}, "observed": {},
}  # fmt: skip
CAUSE = "model-directory-without-weights"


def crashed(folder: Path, profile: str = "chat", **info: Any) -> Run:
    """Create a run that crashed because of missing weights, with the diagnosis of that cause."""
    folder.mkdir(parents=True)
    run = Run(id=folder.name, folder=folder)
    run.update(
        state=State.CRASHED, profile=profile, host="gpu-box", engine="0.5.20", created=1764417600.0, exit=137, **info
    )
    plan = {
        "profile": profile, "digest": "0" * 12, "host": "gpu-box", "engine": "0.5.20", "python": "/opt/bin/python3",
        "work_dir": "/root", "flags": LAUNCH["flags"], "env": {},
    }  # fmt: skip
    run.write("plan", plan)
    run.write("profile", {"name": profile, "accept": [], "expect": {}})
    run.write("launch", LAUNCH)
    run.write("findings", [])
    run.write_text("server.log", LOG)
    run.write("diagnosis", {"cause": CAUSE, "healthy": False, "ledger": []})
    return run


def validated(folder: Path, profile: str = "chat", **validation: Any) -> Run:
    """Create a validated run without a log."""
    folder.mkdir(parents=True)
    run = Run(id=folder.name, folder=folder)
    run.update(state=State.VALIDATED, profile=profile, host="gpu-box", engine="0.5.20", created=1764417600.0)
    verdicts = [{"id": "health", "outcome": "pass", "message": ""}, {"id": "prose", "outcome": "fail", "message": "!!"}]
    run.write("validation", {"outcome": "fail", "level": "ready", "verdicts": verdicts, "samples": {}, **validation})
    return run
