"""Fixtures of the gate's tests: a repository to change, and the command line as CI calls it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from launcher.cli.app import LAUNCH, run
from tests.support.gate_repo import Repo, create


class Judged(Struct, frozen=True):
    """The result of `launch gate --json`."""

    code: int
    report: dict[str, Any]
    error: str

    @property
    def affected(self) -> dict[str, str]:
        """Name → kind of change."""
        return {item["name"]: item["change"] for item in self.report["affected"]}

    def of(self, *statuses: str) -> set[str]:
        """Return `rule path:line` of the remarks that have one of these statuses."""
        return {
            f"{item['rule']} {item['place']['path']}:{item['place']['line']}"
            for item in self.report["remarks"]
            if item["status"] in statuses
        }

    @property
    def failing(self) -> set[str]:
        return self.of("fail")

    def messages(self, rule: str) -> str:
        return "\n".join(item["message"] for item in self.report["remarks"] if item["rule"] == rule)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base repository; created once, and copied for each test."""
    return create(tmp_path_factory.mktemp("gate") / "repo").path


@pytest.fixture(autouse=True)
def outside_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the variables that CI sets, so that they do not affect the tests."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_BASE_REF", "CI_MERGE_REQUEST_DIFF_BASE_SHA"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def repo(template: Path, tmp_path: Path) -> Repo:
    shutil.copytree(template, tmp_path / "repo")
    return Repo(tmp_path / "repo")


@pytest.fixture
def gate(capfd: pytest.CaptureFixture[str]) -> Callable[..., Judged]:
    """A function that runs `launch gate --json` on a repository, with further arguments."""

    def call(repo: Repo, *words: str) -> Judged:
        capfd.readouterr()
        code = run("launch", LAUNCH, ["gate", "--repo", str(repo.path), "--json", *words])
        out, err = capfd.readouterr()
        return Judged(code, json.loads(out) if out.strip() else {}, err)

    return call
