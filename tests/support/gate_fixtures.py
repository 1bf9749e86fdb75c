"""Fixtures of the gate's tests: a repository to change, the command line as CI calls it, and reports to write out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from checks.vocabulary import Severity
from launcher.cli.app import LAUNCH, run
from launcher.gate.report import Affected, Difference, Place, Remark, Report, Status
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


def remark(status: Status = Status.FAIL, **changes: Any) -> Remark:
    """Return a remark on line 5 of the profile `a`."""
    fields = {
        "rule": "flag-unknown-to-engine", "status": status, "severity": Severity.ERROR,
        "message": "--x is not an option", "place": Place(path="profiles/a.yaml", line=5, column=3),
        "profile": "a", "subject": "flag.x",
        "targets": ("0.5.22", "0.5.23"), "remedies": ("Leave it out.",),
    }  # fmt: skip
    return Remark(**{**fields, **changes})


def report(*remarks: Remark, **changes: Any) -> Report:
    """Return the report of a change that sets `--x` in the profile `a`."""
    affected = (
        Affected(name="a", change="changed", path="profiles/a.yaml", reasons=("its file changed",),
                 differences=(Difference(kind="flag", name="x", before=None, after="1"),)),
    )  # fmt: skip
    fields = {"tier": "static", "base": "0" * 40, "base_note": "compared with main", "affected": affected}
    return Report(**{**fields, "remarks": remarks, **changes})
