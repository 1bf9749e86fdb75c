"""Launches of real processes: started, watched, proved ready and stopped, locally and over a real sshd."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from checks.after.probes.expectations import ExpectError
from launcher.errors import PlanRefused
from launcher.flows.launch.attach_run import attach, refresh
from launcher.flows.launch.launch import Options, launch
from launcher.flows.launch.stop_runs import stop
from launcher.run import remote
from launcher.run.events import Exited, Impostor, Ready
from launcher.run.state import State
from launcher.run.store import Run, RunStore
from launcher.transport.base import Transport
from tests.support.bench import Bench, bench

pytestmark = pytest.mark.sshd


@pytest.fixture
def host(tmp_path: Path, transport: Transport) -> Iterator[Bench]:
    created = bench(tmp_path, transport)
    yield created
    for run in created.context.store.all():
        if (run.folder / "plan.json").exists():
            remote.stop(transport, run, drain=0.2)


def alive(run: Run) -> bool:
    return Path(f"/proc/{run.info['pid']}").exists()


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


def test_a_daemon_that_ignores_sigterm_is_found_and_killed(host: Bench) -> None:
    outcome = host.launch("stray")
    assert outcome.run is not None
    stopped = stop(host.context, outcome.run)
    assert (stopped.forced, stopped.clean, stopped.code) == ("kill", True, 0)


def test_children_that_end_shortly_after_the_engine_are_not_killed(host: Bench) -> None:
    outcome = host.launch("lagging")
    assert outcome.run is not None
    stopped = stop(host.context, outcome.run)
    assert (stopped.forced, stopped.clean, stopped.code) == ("", True, 0)


def test_an_engine_that_does_not_drain_is_killed_after_its_time(host: Bench) -> None:
    outcome = host.launch("deaf")
    assert outcome.run is not None
    stopped = stop(host.context, outcome.run, drain=0.3)
    assert (stopped.forced, stopped.clean, stopped.code) == ("kill", True, 137)


def test_a_rejected_request_that_the_engine_still_counts_does_not_delay_the_stop(host: Bench) -> None:
    outcome = host.launch("ghost")
    assert outcome.run is not None
    messages: list[str] = []
    stopped = remote.stop(host.transport, outcome.run, drain=60, say=messages.append)
    assert (stopped.forced, stopped.clean) == ("kill", True)
    assert any("still counting 1 request it already rejected" in text for text in messages), messages


def test_a_running_request_is_drained(host: Bench) -> None:
    outcome = host.launch("busy")
    assert outcome.run is not None
    stopped = stop(host.context, outcome.run)
    assert (stopped.forced, stopped.clean, stopped.code) == ("", True, 0)


def test_answers_of_another_server_do_not_count_as_ready(host: Bench) -> None:
    outcome = host.launch("impostor", envs=("FAKE_ENGINE_PACE=0.01",), detach=True)
    assert outcome.run is not None
    from launcher.flows.launch.watching import Watching
    from launcher.secrets import Masker

    watching = Watching(outcome.run, host.context, Masker())
    ending = watching.until_ready(4.0)
    watching.close()
    assert ending.state is State.TIMED_OUT
    impostor = next(event for event in host.witness.events if isinstance(event, Impostor))
    assert "the server reports served_model_name `somebody-else`, expected `fake`" in impostor.reason


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


def test_killed_supervisor_and_engine_are_vanished_not_running(host: Bench) -> None:
    outcome = host.launch("hang", detach=True)
    run = outcome.run
    assert run is not None
    pid = int(run.info["pid"])
    supervisor = int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
    for victim in (supervisor, pid):
        os.kill(victim, signal.SIGKILL)
    while alive(run):
        time.sleep(0.01)
    assert refresh(host.context, run).state == "vanished"
    assert run.state is State.LOST


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


def test_attach_continues_where_a_killed_launcher_stopped(host: Bench) -> None:
    started = host.launch(envs=("FAKE_ENGINE_PACE=0.05",), detach=True)
    assert started.run is not None
    store = RunStore(host.folder / "runs")
    outcome = attach(host.context, store.find(started.run.id), probe=False)
    assert outcome.state is State.READY
    text = outcome.run.log.read_text() if outcome.run else ""
    assert text.count("server_args=") == text.count("fired up and ready") == 1
    # and again with a local copy that ends inside a line: no line is lost or repeated
    with started.run.log.open("ab") as copy:
        copy.write(b"torn li")
    again = attach(host.context, store.find(started.run.id), probe=False)
    assert again.run is not None
    assert again.run.log.read_text() == text


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
