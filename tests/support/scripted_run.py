"""Runs on this machine whose engine is a line of sh text, started, watched and stopped by the real programs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from launcher.hostside.process import read_identity, run_pids
from launcher.plan.launch_plan import LaunchPlan
from launcher.run import remote
from launcher.run.store import Run, RunStore
from launcher.transport.local import LocalTransport
from tests.support.ports import free_port


class ScriptedRun(Struct, frozen=True, kw_only=True):
    """A run, and its folder on the host (here: this machine)."""

    run: Run
    folder: Path

    @property
    def id(self) -> str:
        return self.run.id

    @property
    def port(self) -> int:
        return self.run.plan.server_port

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def start(self) -> dict[str, Any]:
        return remote.start(LocalTransport(), self.run, {}, systemd=False)

    def pids(self) -> list[int]:
        pids: list[int] = run_pids(self.id, read_identity(self.folder))
        return pids

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds; fail after 20 s."""
        for _ in range(2000):
            if condition():
                return
            time.sleep(0.01)
        raise AssertionError("the condition did not become true")

    def arguments(self, **more: object) -> dict[str, Any]:
        """The arguments that programs for the host share."""
        return {"folder": str(self.folder), "run": self.id, "host": "127.0.0.1", "port": self.port, **more}

    def kill(self) -> None:
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def scripted_run(folder: Path, engine: str, **changes: Any) -> ScriptedRun:
    """Return a planned run. `engine` is sh text; `changes` are fields of its plan."""
    run = RunStore(folder / "store").create("scripted", datetime.now(UTC))
    program = folder / f"engine-{run.id}"
    program.write_text(f"#!/bin/sh\n{engine}\n")
    program.chmod(0o755)
    fields: dict[str, Any] = {
        "profile": "scripted", "digest": "0" * 12, "host": "local", "engine": "0.5.23", "python": str(program),
        "work_dir": str(folder / "work"), "flags": {}, "env": {}, "server_port": free_port(),
    }  # fmt: skip
    run.write("plan", LaunchPlan(**{**fields, **changes}).to_json())
    return ScriptedRun(run=run, folder=folder / "work" / "runs" / run.id)


@contextmanager
def starting(folder: Path) -> Iterator[Callable[..., ScriptedRun]]:
    """Yield a function that starts a run; whatever is left of its runs is killed afterwards."""
    started: list[ScriptedRun] = []

    def start(engine: str, **changes: Any) -> ScriptedRun:
        started.append(scripted_run(folder, engine, **changes))
        started[-1].start()
        return started[-1]

    yield start
    for run in started:
        run.kill()
