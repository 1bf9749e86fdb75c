"""The ready-made CI files: they are valid by the schemas of their tools, and do what they promise."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from checks.catalog.yaml_reader import read
from launcher.cli.app import LAUNCH, run
from tests.support.gate_fixtures import Judged
from tests.support.gate_repo import Repo
from tests.support.paths import ROOT

TOP = ROOT
TEMPLATES = TOP / "launcher/gate/templates"
WORKFLOWS = [TOP / ".github/workflows/ci.yml", TEMPLATES / "github-gate.yml"]


def lint(schema: str, *words: str) -> str:
    """The output of check-jsonschema; empty if the file is valid."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_valid(path: Path) -> None:
    assert lint("vendor.github-workflows", str(path)) == ""


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_job_of_a_workflow_has_a_time_limit(path: Path) -> None:
    assert lint("custom.github-workflows-require-timeout", str(path)) == ""


def test_actionlint_reports_nothing() -> None:
    if shutil.which("actionlint") is None:
        pytest.skip("actionlint is not installed")
    done = subprocess.run(["actionlint", *map(str, WORKFLOWS)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_action_is_valid() -> None:
    assert lint("vendor.github-actions", str(TOP / "action.yml")) == ""


def test_the_action_puts_no_expression_into_a_script() -> None:
    """`${{ }}` inside `run:` would execute the name of a branch as shell text."""
    steps = read(TOP / "action.yml").need("runs").need("steps").plain()
    scripts = [step["run"] for step in steps if "run" in step]
    assert len(scripts) == 2
    assert not [text for text in scripts if "${{" in text]


@pytest.mark.parametrize("path", [TOP / "templates/launch-gate.gitlab-ci.yml", TEMPLATES / "gitlab-ci.yml"])
def test_a_gitlab_template_is_valid(path: Path) -> None:
    assert lint("vendor.gitlab-ci", "--data-transform", "gitlab-ci", str(path)) == ""


def test_the_linter_rejects_an_invalid_workflow(tmp_path: Path) -> None:
    broken = tmp_path / "ci.yml"
    broken.write_text("on: push\njobs: {a: {steps: 5}}\n")
    assert lint("vendor.github-workflows", str(broken)) != ""


def action(tmp_path: Path, code: int, **inputs: str) -> tuple[int, str, str]:
    """Run the action's script with a stand-in for the launcher. Returns exit code, outputs, and its arguments."""
    steps = read(TOP / "action.yml").need("runs").need("steps").plain()
    script = next(step["run"] for step in steps if step.get("id") == "gate")
    launch = tmp_path / "sglang-launcher/bin/launch"
    launch.parent.mkdir(parents=True)
    launch.write_text(f'#!/bin/sh\necho "$*" >{tmp_path}/words\nexit {code}\n')
    launch.chmod(0o755)
    usual = {"BASE": "", "TIER": "static", "HOST": "", "REPO": ".", "ALL": "false", "STRICT": "true"}
    env = {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(tmp_path), "GITHUB_OUTPUT": str(tmp_path / "out")}
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", script], env={**env, **usual, **inputs}, check=False)
    return done.returncode, (tmp_path / "out").read_text(), (tmp_path / "words").read_text()


@pytest.mark.parametrize(
    ("code", "verdict"), [(0, "pass"), (1, "fail"), (5, "inconclusive"), (2, "error"), (3, "error")]
)
def test_the_action_passes_on_verdict_and_exit_code(tmp_path: Path, code: int, verdict: str) -> None:
    ended, outputs, _ = action(tmp_path, code)
    assert (ended, outputs.splitlines()[0]) == (code, f"verdict={verdict}")


def test_the_action_can_accept_an_inconclusive_gate(tmp_path: Path) -> None:
    assert action(tmp_path, 5, STRICT="false")[0] == 0


def test_the_action_passes_on_the_inputs_that_are_set_and_no_others(tmp_path: Path) -> None:
    _, _, words = action(tmp_path, 0, BASE="origin/a b; rm -rf /", HOST="gpu-box", ALL="true")
    assert "--base origin/a b; rm -rf / --host gpu-box --all" in words
    assert "--base" not in action(tmp_path / "plain", 0)[2]


def test_the_hook_names_a_command_that_exists() -> None:
    [hook] = read(TOP / ".pre-commit-hooks.yaml").plain()
    assert hook["id"] == "launch-check"
    assert hook["entry"].split()[1] in LAUNCH


def test_a_new_repository_passes_its_own_gate(tmp_path: Path, gate: Callable[..., Judged]) -> None:
    repo = Repo(tmp_path / "new")
    assert run("launch", LAUNCH, ["init", str(repo.path)]) == 0
    repo.git("init", "-q", "-b", "main")
    repo.commit("first")
    judged = gate(repo, "--all")
    assert (judged.code, judged.affected, judged.failing) == (0, {"first": "inputs"}, set())
    repo.append("profiles/first.yaml", "accept:\n  - {id: a, reason: b}\n")
    repo.edit("profiles/first.yaml", "flags:", "flags:\n  no-such-flag: 1")
    assert gate(repo).failing == {"flag-unknown-to-engine profiles/first.yaml:11"}


def test_the_shipped_profiles_pass_the_shipped_gate(gate: Callable[..., Judged], tmp_path: Path) -> None:
    copy = Repo(tmp_path / "own")
    copy.path.mkdir()
    for name in ("profiles", "gate.yaml"):
        source = TOP / name
        shutil.copytree(source, copy.path / name) if source.is_dir() else shutil.copy(source, copy.path / name)
    copy.git("init", "-q", "-b", "main")
    copy.commit("ours")
    judged = gate(copy, "--all")
    assert judged.failing == set()
    assert judged.of("expected") != set()
    assert json.dumps(judged.report["verdict"]) == '"pass"'
