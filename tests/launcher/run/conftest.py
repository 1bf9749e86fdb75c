"""Fixtures of the tests of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from launcher.run.store import Run
from tests.support.scripted_run import ScriptedRun, scripted_run, starting


@pytest.fixture
def start_run(tmp_path: Path) -> Iterator[Callable[..., ScriptedRun]]:
    """Start runs on this machine: start_run("sh text in place of the engine")."""
    with starting(tmp_path) as start:
        yield start


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A planned run that was not started."""
    return scripted_run(tmp_path, "exit 0").run
