"""A run is followed again from its state now, and a stored state that is out of date is corrected."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from launcher.flows.launch.attach_run import attach, refresh
from launcher.flows.launch.stop_runs import stop
from launcher.run.state import State
from launcher.run.store import Run, RunStore
from launcher.transport.local import LocalTransport
from tests.support.bench import Bench, bench

pytestmark = pytest.mark.slow


def launched(host: Bench, mode: str = "healthy") -> Run:
    run = host.launch(mode).run
    assert run is not None
    return run


def host_folder(host: Bench, run: Run) -> Path:
    return host.folder / "work" / "runs" / run.id


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A host with one run, whose process has ended."""
    created = bench(tmp_path_factory.mktemp("ended"), LocalTransport())
    launched(created, "usage")
    return created


def alive(run: Run) -> bool:
    return Path(f"/proc/{run.info['pid']}").exists()


@pytest.mark.sshd
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


@pytest.mark.sshd
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


def test_a_run_that_is_gone_is_reported_as_it_ended(local: Bench) -> None:
    outcome = attach(local.context, launched(local, "crash"), probe=False)
    assert outcome.state is State.CRASHED
    assert outcome.diagnosis is not None and outcome.diagnosis.cause is not None


def test_a_run_that_was_validated_stays_validated_when_it_is_attached_to(local: Bench) -> None:
    run = launched(local)
    run.update(state=State.VALIDATED)
    assert attach(local.context, run, probe=False).run is not None
    assert run.state is State.VALIDATED


def test_a_running_process_keeps_the_stored_state(local: Bench) -> None:
    run = launched(local)
    assert refresh(local.context, run).state == "running"
    assert (run.state, "ended" in run.info) == (State.READY, False)


@pytest.mark.parametrize(
    ("stored", "code", "corrected"),
    [
        (State.READY, "0", State.STOPPED),
        (State.READY, "1", State.CRASHED),
        (State.STALLED, "137", State.CRASHED),
        (State.TIMED_OUT, "0", State.STOPPED),
        (State.STARTING, "1", State.CRASHED),
        (State.LOST, "1", State.LOST),
        (State.STOPPED, "1", State.STOPPED),
        (State.REFUSED, "1", State.REFUSED),
    ],
)
def test_a_process_that_has_ended_corrects_a_state_that_claims_it_runs(
    ended: Bench, stored: State, code: str, corrected: State
) -> None:
    [run] = ended.context.store.all()
    run.update(state=stored, ended=None)
    (host_folder(ended, run) / "rc").write_text(f"{code}\n")
    look = refresh(ended.context, run)
    assert (look.state, look.code, run.state) == ("exited", int(code), corrected)
    assert (run.info["ended"] is not None) is (stored is not corrected)


def test_a_run_whose_folder_is_gone_is_lost(local: Bench) -> None:
    run = launched(local)
    stop(local.context, run)
    run.update(state=State.READY)
    host_folder(local, run).rename(local.folder / "elsewhere")
    assert refresh(local.context, run).state == "not-started"
    assert run.state is State.LOST
