"""Stopping a run leaves none of its processes, keeps the rest of its log, and stores how it ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from launcher.errors import HostUnreachable
from launcher.flows.launch.stop_runs import fetch_rest, stop, stop_foreign
from launcher.run import remote
from launcher.run.state import State
from launcher.run.store import Run
from launcher.transport.base import Command
from launcher.transport.local import LocalStream, LocalTransport
from tests.support.bench import Bench

pytestmark = pytest.mark.slow


class Severed(LocalTransport):
    """A host whose connection is lost before the log can be followed."""

    def stream(self, command: Command) -> LocalStream:
        if command.label == "follow":
            raise HostUnreachable("the connection was lost", where=self.name)
        return super().stream(command)


def launched(host: Bench, mode: str = "healthy") -> Run:
    run = host.launch(mode).run
    assert run is not None
    return run


def log_on_host(host: Bench, run: Run) -> Path:
    return host.folder / "work" / "runs" / run.id / "server.log"


@pytest.mark.sshd
def test_a_daemon_that_ignores_sigterm_is_found_and_killed(host: Bench) -> None:
    outcome = host.launch("stray")
    assert outcome.run is not None
    stopped = stop(host.context, outcome.run)
    assert (stopped.forced, stopped.clean, stopped.code) == ("kill", True, 0)


@pytest.mark.sshd
def test_children_that_end_shortly_after_the_engine_are_not_killed(host: Bench) -> None:
    outcome = host.launch("lagging")
    assert outcome.run is not None
    stopped = stop(host.context, outcome.run)
    assert (stopped.forced, stopped.clean, stopped.code) == ("", True, 0)


@pytest.mark.sshd
def test_an_engine_that_does_not_drain_is_killed_after_its_time(host: Bench) -> None:
    outcome = host.launch("deaf")
    assert outcome.run is not None
    stopped = stop(host.context, outcome.run, drain=0.3)
    assert (stopped.forced, stopped.clean, stopped.code) == ("kill", True, 137)


@pytest.mark.sshd
def test_a_rejected_request_that_the_engine_still_counts_does_not_delay_the_stop(host: Bench) -> None:
    outcome = host.launch("ghost")
    assert outcome.run is not None
    messages: list[str] = []
    stopped = remote.stop(host.transport, outcome.run, drain=60, say=messages.append)
    assert (stopped.forced, stopped.clean) == ("kill", True)
    assert any("still counting 1 request it already rejected" in text for text in messages), messages


@pytest.mark.sshd
def test_a_running_request_is_drained(host: Bench) -> None:
    outcome = host.launch("busy")
    assert outcome.run is not None
    stopped = stop(host.context, outcome.run)
    assert (stopped.forced, stopped.clean, stopped.code) == ("", True, 0)


def test_a_stopped_run_stores_its_exit_code_its_end_and_its_whole_log(local: Bench) -> None:
    run = launched(local)
    run.log.write_bytes(run.log.read_bytes()[:40])
    stopped = stop(local.context, run)
    assert (stopped.state, stopped.code, stopped.clean) == ("exited", 0, True)
    assert (run.state, run.info["exit"], run.info["ended"] >= run.info["started"]) == (State.STOPPED, 0, True)
    assert run.log.read_bytes() == log_on_host(local, run).read_bytes()
    assert any("SIGTERM to the engine" in text for text in local.witness.messages)


def test_stopping_a_run_that_crashed_does_not_hide_the_crash(local: Bench) -> None:
    run = launched(local, "usage")
    assert stop(local.context, run).clean
    assert (run.state, run.info["exit"]) == (State.CRASHED, 2)


def test_a_run_can_be_stopped_twice(local: Bench) -> None:
    run = launched(local)
    stop(local.context, run)
    text = run.log.read_text()
    again = stop(local.context, run)
    assert (again.state, again.code, again.clean, again.forced) == ("exited", 0, True, "")
    assert (run.state, run.log.read_text()) == (State.STOPPED, text)


def test_a_run_of_another_machine_is_stopped_by_its_folder_alone(local: Bench) -> None:
    run = launched(local)
    stopped = stop_foreign(local.context, run.id, local.host.work_dir, drain=10)
    assert (stopped.state, stopped.code, stopped.survivors) == ("exited", 0, ())
    assert remote.look(local.transport, run).state == "exited"
    assert run.state is State.READY


def test_a_log_that_cannot_be_fetched_leaves_the_local_copy_as_it_was(local: Bench) -> None:
    run = launched(local, "usage")
    text = run.log.read_bytes()
    with log_on_host(local, run).open("a") as log:
        log.write("one more line, cut off")
    fetch_rest(replace(local.context, transport=Severed()), run)
    assert run.log.read_bytes() == text
    fetch_rest(local.context, run)
    assert run.log.read_bytes() == text + b"one more line, cut off"
    run.update(state=State.LOST)
    assert stop(replace(local.context, transport=Severed()), run).state == "exited"
    assert run.state is State.STOPPED


def test_a_log_that_is_gone_leaves_the_local_copy_as_it_was(local: Bench) -> None:
    run = launched(local, "usage")
    text = run.log.read_bytes()
    log_on_host(local, run).unlink()
    fetch_rest(local.context, run)
    assert run.log.read_bytes() == text
