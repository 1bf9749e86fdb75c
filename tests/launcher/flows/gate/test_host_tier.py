"""Old and new profile on a real host, locally and over a real sshd: alternated, compared, and the host restored."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from launcher.cli.app import LAUNCH
from launcher.cli.app import run as command_line
from launcher.flows.gate.host_tier import Budget, Measure, Pair, host_tier
from launcher.flows.launch.flow_context import FlowContext
from launcher.gate.policy import HostTier
from launcher.profile.file import Accepted, Profile
from launcher.run import remote
from launcher.run.state import State
from launcher.run.store import Run
from launcher.transport.base import Transport
from tests.support.bench import FAKE_ENGINE, Bench, bench
from tests.support.gate_repo import create
from tests.support.ports import free_port

pytestmark = pytest.mark.sshd

FAST = {"verdicts": [], "samples": {"speed": {"decode": [100.0, 101.0, 99.0, 100.5, 99.5]}}}
SLOW = {"verdicts": [], "samples": {"speed": {"decode": [80.0, 81.0, 79.0, 80.5, 79.5]}}}


# Other tests hold both transports to one contract; a few whole trials over ssh are enough here.
LOCALLY = pytest.mark.parametrize("transport", ["local"], indirect=True)


@pytest.fixture
def host(tmp_path: Path, transport: Transport) -> Iterator[Bench]:
    created = bench(tmp_path, transport)
    yield created
    for run in created.context.store.all():
        if (run.folder / "plan.json").exists():
            remote.stop(transport, run, drain=0.2)


def speeds(by_page_size: Mapping[str, Mapping[str, Any]]) -> Measure:
    """A measurement that depends on one flag of the profile."""

    def measure(context: FlowContext, run: Run, profile: Profile) -> Mapping[str, Any]:
        return by_page_size[str(profile.flags["page-size"].value)]

    return measure


def running(host: Bench) -> list[str]:
    return [item.run for item in remote.look_at_all(host.transport, host.host.work_dir) if item.state == "running"]


def accepting(profile: Profile) -> Profile:
    """The profile, with the findings accepted that hold for the stand-in and would not for a real host."""
    lacks = ("kernel-package-below-minimum", "model-config-missing", "model-directory-without-weights")
    items = (*lacks, "tokenizer-files-missing")
    return replace(profile, accept=tuple(Accepted(id=name, reason="a stand-in", where="-") for name in items))


def pair(host: Bench, mode: str = "healthy") -> Pair:
    old, new = host.profile("healthy", "page-size=1"), host.profile(mode, "page-size=16")
    return Pair(old=accepting(old), new=accepting(new))


MEASURED = speeds({"1": FAST, "16": SLOW})


def test_a_slower_profile_is_worse_and_both_runs_are_stopped(host: Bench) -> None:
    [trial] = host_tier(host.context, [pair(host)], host.host, HostTier(), MEASURED)
    assert (trial.verdict, [item.verdict for item in trial.comparisons]) == ("worse", ["worse"])
    assert [host.context.store.find(name).state for name in trial.runs] == [State.STOPPED, State.STOPPED]
    assert trial.gpu_minutes > 0
    assert running(host) == []


@LOCALLY
def test_a_faster_profile_is_better(host: Bench) -> None:
    [trial] = host_tier(host.context, [pair(host)], host.host, HostTier(), speeds({"1": SLOW, "16": FAST}))
    assert trial.verdict == "better"


@LOCALLY
def test_rounds_alternate_which_side_begins(host: Bench) -> None:
    [trial] = host_tier(host.context, [pair(host)], host.host, HostTier(rounds=2), MEASURED)
    assert trial.verdict == "worse"
    assert [text.split()[0] for text in host.witness.messages if text.startswith(("old ", "new "))] == [
        "old", "new", "new", "old",
    ]  # fmt: skip
    assert len(trial.runs) == 4


def test_a_new_profile_that_crashes_is_worse_and_the_earlier_run_is_restarted(host: Bench) -> None:
    before = host.launch("healthy").run
    assert before is not None
    [trial] = host_tier(host.context, [pair(host, "crash")], host.host, HostTier(), MEASURED)
    assert trial.verdict == "worse"
    assert "the new profile does not start: crashed" in trial.message
    assert before.state is State.STOPPED
    [run_id] = running(host)
    restored = host.context.store.find(run_id)
    assert (restored.info["restored_from"], restored.state) == (before.id, State.READY)
    assert restored.plan == before.plan


@LOCALLY
def test_the_earlier_run_is_restarted_even_if_the_measurement_breaks(host: Bench) -> None:
    host.launch("healthy")

    def broken(context: FlowContext, run: Run, profile: Profile) -> Mapping[str, Any]:
        raise RuntimeError("a fault of ours")

    with pytest.raises(RuntimeError, match="a fault of ours"):
        host_tier(host.context, [pair(host)], host.host, HostTier(), broken)
    [run_id] = running(host)
    assert "restored_from" in host.context.store.find(run_id).info


@LOCALLY
def test_a_spent_budget_is_inconclusive_and_ends_the_trial(host: Bench) -> None:
    [trial] = host_tier(host.context, [pair(host)], host.host, HostTier(budget=0.0), MEASURED)
    assert (trial.verdict, trial.runs) == ("inconclusive", ())
    assert "the budget of 0 GPU minutes is spent" in trial.message


@LOCALLY
def test_a_profile_that_does_not_get_ready_within_the_budget_is_inconclusive_and_stopped(host: Bench) -> None:
    hangs = Pair(new=accepting(host.profile("hang", "page-size=16")))
    [trial] = host_tier(host.context, [hangs], host.host, HostTier(budget=1.5 / 60), MEASURED)
    assert trial.verdict == "inconclusive"
    assert running(host) == []


@LOCALLY
def test_a_new_profile_is_compared_with_its_stored_baseline(host: Bench) -> None:
    without_old = Pair(new=accepting(host.profile("healthy", "page-size=16")), baseline=FAST)
    [trial] = host_tier(host.context, [without_old], host.host, HostTier(), MEASURED)
    assert (trial.verdict, "against the stored baseline" in trial.message) == ("worse", True)


def test_the_budget_counts_every_gpu_of_a_launch() -> None:
    from datetime import UTC, datetime

    from tests.support.fake_clock import FakeClock

    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
    budget = Budget(8.0, clock)
    budget.begin(8)
    clock.sleep(45)
    assert (budget.spent / 60, budget.left) == (6.0, 15.0)
    budget.end()
    clock.sleep(1000)
    assert budget.spent / 60 == 6.0


def test_the_command_line_tries_a_change_and_writes_evidence_bundles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """From a pull request to evidence bundles, for a profile that crashes the stand-in engine."""
    monkeypatch.setenv("SGLANG_LAUNCHER_STATE", str(tmp_path / "state"))
    lacks = ("kernel-package-below-minimum", "model-config-missing", "model-directory-without-weights")
    accepted = "".join(f"  - {{id: {name}, reason: stand-in}}\n" for name in (*lacks, "tokenizer-files-missing"))
    profile = (
        f"why: stand-in\nmodel: {{path: {tmp_path}, served-name: fake}}\nflags: {{port: {free_port()}}}\n"
        f"env: {{FAKE_ENGINE: healthy}}\naccept:\n{accepted}"
    )
    hosts = (
        f"hosts:\n  local:\n    python: {sys.executable}\n    work_dir: {tmp_path}/work\n"
        f"    env: {{PYTHONPATH: {FAKE_ENGINE}}}\n"
    )
    policy = "host: {suite: smoke, budget-gpu-minutes: 5}\n"
    repo = create(tmp_path / "repo", {"profiles/a.yaml": profile, "hosts.yaml": hosts, "gate.yaml": policy})
    repo.edit("profiles/a.yaml", "FAKE_ENGINE: healthy", "FAKE_ENGINE: crash")
    words = ["--tier", "host", "--host", "local", "--bundles", str(tmp_path / "evidence"), "--json"]
    code = command_line("launch", LAUNCH, ["gate", "--repo", str(repo.path), *words])
    report = json.loads(capfd.readouterr().out)
    [trial] = report["trials"]
    assert (code, trial["verdict"], len(trial["runs"])) == (1, "worse", 2)
    assert [item["rule"] for item in report["remarks"] if item["status"] == "fail"] == ["trial-worse"]
    assert sorted(path.name for path in (tmp_path / "evidence").iterdir()) == sorted(
        f"{name}.tar.gz" for name in trial["runs"]
    )
