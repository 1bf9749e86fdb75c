"""Launches of real processes: started, watched, proved ready and stopped, locally and over a real sshd."""

import json
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from checks.after.probes.expectations import ExpectError
from launcher.errors import PlanRefused
from launcher.flows.launch.launch import Options, launch
from launcher.flows.launch.stop_runs import stop
from launcher.run import remote
from launcher.run.events import Exited, Ready
from launcher.run.state import State
from tests.support.bench import Bench

pytestmark = pytest.mark.sshd


def test_a_healthy_engine_proves_ready_and_leaves_no_process_when_stopped(host: Bench) -> None:
    outcome = host.launch()
    assert outcome.state is State.READY
    assert outcome.run is not None
    ready = next(event for event in host.witness.events if isinstance(event, Ready))
    assert f"a process of this run listens on port {host.port}" in ready.evidence
    assert "served_model_name is fake" in ready.evidence
    assert "fired up" in outcome.run.log.read_text()

    stopped = stop(host.context, outcome.run)
    assert (stopped.state, stopped.code, stopped.forced, stopped.clean) == ("exited", 0, "", True)
    assert outcome.run.state is State.STOPPED
    assert "Draining requests" in outcome.run.log.read_text()


def test_a_crash_is_recorded_with_its_exit_code_and_the_whole_log(host: Bench) -> None:
    outcome = host.launch("crash")
    assert outcome.state is State.CRASHED
    assert outcome.run is not None
    assert outcome.run.info["exit"] == 137
    assert outcome.diagnosis is not None
    assert not outcome.diagnosis.healthy
    assert "Cannot find any model weights" in outcome.run.log.read_text()


def test_a_usage_error_ends_the_launch_immediately(host: Bench) -> None:
    outcome = host.launch("usage")
    assert (outcome.state, outcome.run and outcome.run.info["exit"]) == (State.CRASHED, 2)
    assert outcome.diagnosis is not None
    assert outcome.diagnosis.cause is not None
    assert outcome.diagnosis.cause.id == "flag-unknown-to-engine"


def test_a_port_taken_by_a_foreign_process_is_refused_with_its_pid_before_the_start(host: Bench) -> None:
    with socket.socket() as foreign:
        foreign.bind(("127.0.0.1", host.port))
        foreign.listen()
        with pytest.raises(PlanRefused) as caught:
            host.launch()
    assert f"taken by pid {os.getpid()}" in caught.value.message
    run = next(host.context.store.all())
    assert run.state is State.REFUSED


def test_of_many_launches_for_one_port_exactly_one_starts(host: Bench) -> None:
    results: list[str] = []
    profile, options = host.profile(), Options(detach=True, ignore_findings=True)

    def launch_once() -> None:
        try:
            results.append(str(launch(host.context, profile, host.host, options).state))
        except PlanRefused as error:
            results.append("refused" if "already uses port" in error.message or "taken by" in error.message else "?")

    threads = [threading.Thread(target=launch_once) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["refused"] * 5 + ["starting"]


def test_second_launch_names_the_run_that_holds_the_port(host: Bench) -> None:
    first = host.launch()
    assert first.run is not None
    with pytest.raises(PlanRefused) as caught:
        host.launch()
    assert first.run.id in caught.value.message


def test_a_reused_pid_is_not_mistaken_for_the_engine(host: Bench) -> None:
    outcome = host.launch("usage")
    assert outcome.run is not None
    folder = host.folder / "work" / "runs" / outcome.run.id
    (folder / "rc").unlink()
    _, start, boot = (folder / "pid").read_text().split()
    (folder / "pid").write_text(f"{os.getpid()} {start} {boot}")
    look = remote.look(host.transport, outcome.run)
    assert look.state == "vanished"
    (folder / "pid").write_text(f"{os.getpid()} {start} another-boot")
    assert remote.look(host.transport, outcome.run).state == "vanished"


def test_secrets_are_neither_stored_nor_on_the_command_line(host: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret-value")
    monkeypatch.setenv("HF_TOKEN", "hf-very-secret-token")
    outcome = host.launch("healthy", "api-key=env:MY_KEY", envs=("HF_TOKEN",))
    assert outcome.run is not None
    assert outcome.state is State.READY
    kept = b"".join(path.read_bytes() for path in outcome.run.folder.rglob("*") if path.is_file())
    line = Path(f"/proc/{outcome.run.info['pid']}/cmdline").read_bytes()
    for secret in (b"sk-very-secret-value", b"hf-very-secret-token"):
        assert secret not in kept
        assert secret not in line
    assert b"hf-very-secret-token" in Path(f"/proc/{outcome.run.info['pid']}/environ").read_bytes()
    assert "api_key='•••'" in outcome.run.log.read_text()
    folder = host.folder / "work" / "runs" / outcome.run.id
    assert {path.stat().st_mode & 0o077 for path in folder.glob("secrets.*")} == {0}
    stop(host.context, outcome.run)
    assert not list(folder.glob("secrets.*"))


def test_every_state_is_written_before_the_next_step(host: Bench) -> None:
    outcome = host.launch("crash")
    assert outcome.run is not None
    kinds = [event["event"] for event in outcome.run.events()]
    assert kinds[0] == "Started"
    assert kinds[-1] == "Exited"
    assert any(isinstance(event, Exited) for event in host.witness.events)
    assert json.loads((outcome.run.folder / "run.json").read_text())["state"] == "crashed"


def test_the_script_can_be_run_again_by_hand(host: Bench) -> None:
    outcome = host.launch("usage")
    assert outcome.run is not None
    folder = host.folder / "work" / "runs" / outcome.run.id
    subprocess.run(["sh", "launch.sh"], cwd=folder, timeout=30, check=False)
    assert (folder / "rc").read_text() == "2\n"


def test_an_unknown_expectation_is_refused_before_a_run_exists(host: Bench) -> None:
    profile = replace(host.profile(), expect={"sped": {"margin": 0.1}})
    with pytest.raises(ExpectError, match="speed"):
        launch(host.context, profile, host.host, Options(ignore_findings=True))
    assert list(host.context.store.all()) == []


def test_the_run_keeps_its_verdicts_including_that_of_a_missing_baseline(host: Bench) -> None:
    profile = replace(host.profile(), expect={"baseline": "prod", "timeout": 5})
    options = Options(ignore_findings=True, ask_engine=False, soak=60)
    outcome = launch(host.context, profile, host.host, options)
    assert outcome.state is State.VALIDATED
    assert outcome.run is not None
    kept = {item["id"]: item["outcome"] for item in outcome.run.read("validation")["verdicts"]}
    assert kept["baseline"] == "inconclusive"
    assert kept["prose"] == "fail"
    assert "soak" not in kept  # a server that failed validation is not soaked
