"""Fixtures of the tests of commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.run import remote
from launcher.run.store import RunStore
from launcher.transport.local import LocalTransport
from tests.support.command_line import Cli, stand_in
from tests.support.gate_fixtures import outside_ci, repo, template

__all__ = ["cli", "engine", "outside_ci", "repo", "template"]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """The commands, in an empty folder and without earlier runs."""
    monkeypatch.setenv("SGLANG_LAUNCHER_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return Cli(tmp_path, capsys)


@pytest.fixture
def engine(cli: Cli) -> Iterator[Cli]:
    """The commands, on a machine with the stand-in engine and the profile `fake`; runs are stopped afterwards."""
    stand_in(cli.folder)
    yield cli
    for run in RunStore().all():
        if (run.folder / "plan.json").exists():
            remote.stop(LocalTransport(), run, drain=0.2)
