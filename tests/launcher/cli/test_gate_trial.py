"""The host tier of `launch gate`: which profiles are launched, and what is reported of them."""

from __future__ import annotations

import json
import sys

import pytest

from launcher.run.store import RunStore
from tests.support.bench import FAKE_ENGINE
from tests.support.command_line import LACKS, Cli
from tests.support.gate_repo import Repo, create
from tests.support.ports import free_port


@pytest.fixture
def trial(engine: Cli) -> Repo:
    """A repository with one profile that the stand-in engine accepts, an abstract parent, and the only inventory."""
    (engine.folder / "hosts.yaml").unlink()
    profile = {
        "why": "stand-in", "model": {"path": str(engine.folder), "served-name": "fake"},
        "flags": {"port": free_port()}, "env": {"FAKE_ENGINE": "crash"},
        "accept": [{"id": name, "reason": "a stand-in"} for name in LACKS],
    }  # fmt: skip
    host = {"python": sys.executable, "work_dir": str(engine.folder / "work"), "env": {"PYTHONPATH": str(FAKE_ENGINE)}}
    return create(
        engine.folder / "repo",
        {
            "profiles/a.yaml": json.dumps(profile),
            "profiles/_base.yaml": "why: Parent.\nabstract: true\n",
            "hosts.yaml": json.dumps({"hosts": {"local": host}}),
            "gate.yaml": "host: {suite: smoke, budget-gpu-minutes: 5}\n",
        },
    )


def gate(cli: Cli, repo: Repo, *words: str) -> tuple[int, str, str]:
    return cli("gate", "--repo", str(repo.path), "--tier", "host", "--host", "local", "--json", *words)


def launches() -> int:
    return len(list(RunStore().all()))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("a", '"stand-in"', '"another reason"'),
        ("a", '"reason": "a stand-in"}]', '"reason": "another"}]'),
        ("_base", "Parent.", "Another parent."),
    ],
)
def test_a_change_that_no_launch_can_show_is_not_tried(trial: Repo, engine: Cli, name: str, old: str, new: str) -> None:
    trial.edit(f"profiles/{name}.yaml", old, new)
    code, out, err = gate(engine, trial)
    assert (code, json.loads(out)["trials"], launches()) == (0, [], 0), err


def test_a_deleted_profile_is_not_tried(trial: Repo, engine: Cli) -> None:
    (trial.path / "profiles" / "a.yaml").unlink()
    _, out, _ = gate(engine, trial)
    assert (json.loads(out)["trials"], launches()) == ([], 0)


def test_a_change_that_fails_the_checks_costs_no_launch(trial: Repo, engine: Cli) -> None:
    trial.edit("profiles/a.yaml", '"flags": {', '"flags": {"no-such-flag": 1, ')
    code, out, _ = gate(engine, trial)
    assert (code, json.loads(out)["trials"], launches()) == (1, [], 0)


def test_a_host_must_be_named(trial: Repo, engine: Cli) -> None:
    code, out, err = engine("gate", "--repo", str(trial.path), "--tier", "host")
    assert (code, out, "launch gate --tier host --host NAME" in err) == (2, "", True)


@pytest.mark.slow
def test_a_new_profile_that_crashes_blocks_the_change_and_its_run_is_kept(trial: Repo, engine: Cli) -> None:
    trial.write("profiles/b.yaml", trial.read("profiles/a.yaml"))
    code, out, err = gate(engine, trial, "--bundles", "evidence")
    report = json.loads(out)
    [shown] = report["trials"]
    assert (code, shown["profile"], shown["host"], shown["verdict"]) == (1, "b", "local", "worse")
    [remark] = [item for item in report["remarks"] if item["rule"] == "trial-worse"]
    assert (remark["place"]["path"], remark["profile"], remark["status"]) == ("profiles/b.yaml", "b", "fail")
    assert remark["message"].startswith("on local: ")
    bundles = sorted(path.name for path in (engine.folder / "evidence").iterdir())
    assert bundles == sorted(f"{name}.tar.gz" for name in shown["runs"])
    assert err.count("evidence: ") == len(bundles)


@pytest.mark.slow
def test_a_budget_that_is_spent_leaves_the_change_undecided(trial: Repo, engine: Cli) -> None:
    trial.edit("profiles/a.yaml", '"crash"', '"hang"')
    trial.edit("gate.yaml", "budget-gpu-minutes: 5", "budget-gpu-minutes: 0.01")
    code, out, _ = gate(engine, trial)
    report = json.loads(out)
    assert (code, report["verdict"], report["trials"][0]["verdict"]) == (5, "inconclusive", "inconclusive")
    [remark] = [item for item in report["remarks"] if item["rule"] == "trial-inconclusive"]
    assert (remark["severity"], remark["status"]) == ("warning", "inconclusive")


@pytest.mark.slow
def test_a_changed_profile_is_tried_against_its_old_form(trial: Repo, engine: Cli) -> None:
    trial.edit("profiles/a.yaml", '"flags": {', '"flags": {"page-size": 16, ')
    code, out, _ = gate(engine, trial)
    [shown] = json.loads(out)["trials"]
    assert (code, shown["verdict"]) == (5, "inconclusive")
    assert shown["message"].startswith("cannot compare: the old profile does not start")
