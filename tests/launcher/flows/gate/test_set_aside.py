"""Runs on a host are stopped for a trial and restarted afterwards, or nothing is stopped at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.errors import LauncherError, UsageError
from launcher.flows.gate.set_aside import restore, running, set_aside
from launcher.flows.launch.stop_runs import stop
from launcher.run import remote
from launcher.run.state import State
from launcher.run.store import Run
from launcher.transport.local import LocalTransport
from tests.support.bench import Bench, bench

pytestmark = pytest.mark.slow


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Bench]:
    created = bench(tmp_path, LocalTransport())
    yield created
    for run in created.context.store.all():
        if (run.folder / "plan.json").exists():
            remote.stop(created.transport, run, drain=0.2)


def launched(host: Bench, *envs: str) -> Run:
    run = host.launch("healthy", envs=envs).run
    assert run is not None
    return run


def on_host(host: Bench) -> list[str]:
    return [item.run for item in remote.look_at_all(host.transport, host.host.work_dir) if item.state == "running"]


def test_a_run_is_stopped_for_the_block_and_restarted_with_the_same_plan(host: Bench) -> None:
    before, failures = launched(host), list[str]()
    with set_aside(host.context, host.host, failures):
        assert (on_host(host), before.state) == ([], State.STOPPED)
    [run_id] = on_host(host)
    restored = host.context.store.find(run_id)
    assert (restored.info["restored_from"], restored.state, restored.plan) == (before.id, State.READY, before.plan)
    assert (failures, restored.read("findings")) == ([], before.read("findings"))
    assert f"run {before.id} was restarted as {run_id}" in host.witness.messages


def test_a_run_is_restarted_even_if_the_block_fails(host: Bench) -> None:
    launched(host)
    with pytest.raises(ZeroDivisionError), set_aside(host.context, host.host, []):
        raise ZeroDivisionError
    assert len(on_host(host)) == 1


def test_a_host_without_runs_has_nothing_to_set_aside(host: Bench) -> None:
    failures: list[str] = []
    with set_aside(host.context, host.host, failures):
        pass
    assert (failures, host.witness.messages, list(host.context.store.all())) == ([], [], [])


def test_a_run_that_has_ended_is_not_restarted(host: Bench) -> None:
    stop(host.context, launched(host))
    assert running(host.context, host.host) == []


def test_a_run_that_was_started_from_another_machine_is_not_touched(host: Bench, tmp_path: Path) -> None:
    run = launched(host)
    elsewhere = bench(tmp_path / "other", host.transport).context
    with (
        pytest.raises(LauncherError, match="was started from another machine") as caught,
        set_aside(elsewhere, host.host, []),
    ):
        pass
    assert f"launch stop {run.id}" in caught.value.hint
    assert on_host(host) == [run.id]


def test_a_run_whose_secret_is_not_set_here_is_not_stopped(host: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "not-a-real-one")
    run = launched(host, "HF_TOKEN")
    assert running(host.context, host.host) == [(run, {"HF_TOKEN": "not-a-real-one"})]
    monkeypatch.delenv("HF_TOKEN")
    with (
        pytest.raises(UsageError, match="the secret `HF_TOKEN` is not set in this environment"),
        set_aside(host.context, host.host, []),
    ):
        pass
    assert on_host(host) == [run.id]


def test_a_run_that_cannot_be_restarted_is_reported_and_raises_nothing(host: Bench) -> None:
    before, failures = launched(host), list[str]()
    with set_aside(host.context, host.host, failures):
        launched(host)  # holds the port of the run that was set aside
    [message] = failures
    assert message.startswith(f"run {before.id} was not restarted: ")


def test_a_run_that_crashes_at_its_restart_is_reported_with_its_new_state(host: Bench) -> None:
    before = launched(host)
    stop(host.context, before)
    plan = before.read("plan")
    before.write("plan", {**plan, "env": {**plan["env"], "FAKE_ENGINE": "crash"}})
    message = restore(host.context, before, {})
    assert message.startswith(f"run {before.id} was restarted as ")
    assert "which is crashed: the engine exited with code 137" in message
