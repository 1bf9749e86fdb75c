"""Fixtures of the tests of the programs for the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.scripted_run import ScriptedRun, starting


@pytest.fixture
def start_run(tmp_path: Path) -> Iterator[Callable[..., ScriptedRun]]:
    """Start runs on this machine: start_run("sh text in place of the engine")."""
    with starting(tmp_path) as start:
        yield start
