"""Command lines run in this process, with a state folder of their own; runs to show; a profile of the stand-in."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from checks.after.validation import as_dict
from launcher.cli import app
from launcher.run.store import Run, RunStore
from tests.support import validating
from tests.support.bench import FAKE_ENGINE
from tests.support.paths import ROOT
from tests.support.ports import free_port

LACKS = ("kernel-package-below-minimum", "model-config-missing", "model-directory-without-weights",
         "tokenizer-files-missing")  # fmt: skip
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


class Cli:
    """Runs command lines of `launch`, and those of `diagnose`, in a folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        return self._run("launch", app.LAUNCH, words)

    def diagnose(self, *words: str) -> tuple[int, str, str]:
        return self._run("diagnose", app.DIAGNOSE, words)

    def _run(self, program: str, table: dict[str, tuple[str, str]], words: tuple[str, ...]) -> tuple[int, str, str]:
        self._capsys.readouterr()
        code = app.run(program, table, words)
        shown = self._capsys.readouterr()
        return code, shown.out, shown.err

    def run(self, **changes: Any) -> Run:
        """Store a run with a validation of the suite `standard`, and return it."""
        run = stored(state="validated")
        validation, _ = validating.run(*changes.pop("faults", ()), suite="standard", expect={"skip": ["abort"]})
        run.write("validation", as_dict(validation))
        return run


def on_a_terminal(program: str, *words: str) -> str:
    """Return what a command prints to a terminal, colours included."""
    reader, terminal = pty.openpty()
    code = f"from launcher.cli.app import {program}; {program}()"
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "300", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", code, *words], stdout=terminal, env=env)
    os.close(terminal)
    printed = b""
    with suppress(OSError), os.fdopen(reader, "rb", buffering=0) as output:  # an error: the other end is closed
        while chunk := output.read(65_536):
            printed += chunk
    process.wait()
    return printed.decode()


def stored(profile: str = "p", *, minute: int = 0, log: str = "", **info: Any) -> Run:
    """Store a run that was started so many minutes after noon, and return it."""
    run = RunStore().create(profile, NOON + timedelta(minutes=minute))
    run.update(**{"state": "crashed", "profile": profile, "host": "local", "engine": "0.5.23", **info})
    if log:
        run.log.write_text(log)
    return run


def until(happened: Callable[[], bool]) -> None:
    """Wait for another process."""
    while not happened():
        time.sleep(0.01)


def stand_in(folder: Path) -> None:
    """Make `local` a host with the stand-in engine, and `fake` a profile that it accepts, for commands in a folder."""
    engine = {"python": sys.executable, "work_dir": str(folder / "work"), "env": {"PYTHONPATH": str(FAKE_ENGINE)}}
    (folder / "hosts.yaml").write_text(json.dumps({"hosts": {"local": engine}}))
    (folder / "profiles").mkdir()
    model = {"path": str(folder), "served-name": "fake"}
    accept = [{"id": finding, "reason": "a stand-in"} for finding in LACKS]
    profile = {"why": "stand-in", "model": model, "flags": {"port": free_port()}, "accept": accept}
    (folder / "profiles" / "fake.yaml").write_text(json.dumps(profile))
