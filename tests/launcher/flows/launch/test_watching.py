"""A started run is watched to its outcome: only the process itself proves that it is ready, and no wait is endless."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from launcher.clock import SystemClock
from launcher.errors import HostUnreachable
from launcher.flows.launch.stop_runs import stop
from launcher.flows.launch.watching import Watching
from launcher.run.events import Impostor, Ready
from launcher.run.frames import Ended
from launcher.run.state import State
from launcher.run.store import Run
from launcher.secrets import Masker
from launcher.transport.base import Command
from launcher.transport.local import LocalStream, LocalTransport
from tests.support.bench import Bench

pytestmark = pytest.mark.slow


class Fast(SystemClock):
    """A clock on which hours pass in a tenth of a second."""

    def monotonic(self) -> float:
        return super().monotonic() * 100_000


class Severed(LocalTransport):
    """A host whose connection is lost as soon as something is streamed."""

    def stream(self, command: Command) -> LocalStream:
        raise HostUnreachable("no route to host", where=self.name)


def started(host: Bench, mode: str = "healthy") -> Run:
    run = host.launch(mode, detach=True).run
    assert run is not None
    return run


@contextmanager
def watched(host: Bench, run: Run, **services: object) -> Iterator[Watching]:
    watching = Watching(run, replace(host.context, **services), Masker())
    try:
        yield watching
    finally:
        watching.close()


@pytest.mark.sshd
def test_answers_of_another_server_do_not_count_as_ready(host: Bench) -> None:
    run = host.launch("impostor", envs=("FAKE_ENGINE_PACE=0.01",), detach=True).run
    assert run is not None
    with watched(host, run) as watching:
        ending = watching.until_ready(4.0)
    assert ending.state is State.TIMED_OUT
    impostor = next(event for event in host.witness.events if isinstance(event, Impostor))
    assert "the server reports served_model_name `somebody-else`, expected `fake`" in impostor.reason


def test_a_run_that_answers_is_ready_with_evidence_and_its_log_is_complete(local: Bench) -> None:
    run = started(local)
    with watched(local, run) as watching:
        ending = watching.until_ready(60)
        assert (ending.state, watching.ended) == (State.READY, None)
        assert watching.info["served_model_name"] == "fake"
    ready = next(event for event in local.witness.events if isinstance(event, Ready))
    assert ready.evidence != ()
    assert "fired up and ready" in run.log.read_text()
    assert local.witness.kinds().count("Ready") == 1


def test_watching_ends_and_the_run_continues(local: Bench) -> None:
    run = started(local)
    with watched(local, run) as watching:
        watching.until_ready(60)
    with watched(local, run) as again:
        assert again.until_ready(60).state is State.READY


def test_a_crash_ends_the_watch_with_the_exit_code(local: Bench) -> None:
    with watched(local, started(local, "crash")) as watching:
        ending = watching.until_ready(60)
        assert watching.ended is not None
    assert ending.state is State.CRASHED
    assert "exited with code 137" in ending.reason


def test_a_run_that_is_stopped_meanwhile_was_stopped_on_request(local: Bench) -> None:
    run = started(local, "hang")
    with watched(local, run) as watching:
        stop(local.context, run, drain=0.1)
        ending = watching.until_ready(60)
    assert (ending.state, ending.reason) == (State.STOPPED, "stopped on request")


def test_a_run_without_progress_is_stalled(local: Bench) -> None:
    with watched(local, started(local, "hang"), clock=Fast()) as watching:
        ending = watching.until_ready(1e12)
    assert ending.state is State.STALLED
    assert "no progress for" in ending.reason


def test_a_run_that_takes_longer_than_the_deadline_is_timed_out(local: Bench) -> None:
    with watched(local, started(local, "hang")) as watching:
        ending = watching.until_ready(0.0)
    assert (ending.state, "not ready 0 s after the start" in ending.reason) == (State.TIMED_OUT, True)


def test_a_lost_connection_says_nothing_about_the_run(local: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("launcher.run.log_copy.RETRY_SECONDS", ())
    with watched(local, started(local, "hang"), transport=Severed()) as watching:
        ending = watching.until_ready(60)
    assert (ending.state, ending.reason) == (State.LOST, "lost the connection to the host: no route to host")


ENDS = [
    (Ended("exited", 0, asked=True), State.STOPPED, "stopped on request during the probes"),
    (Ended("exited", 137, asked=True), State.STOPPED, "stopped on request during the probes"),
    (Ended("vanished", None), State.LOST, "disappeared without an exit code"),
    (Ended("exited", 1), State.CRASHED, "exited with code 1 during the probes"),
    (Ended("exited", 0), State.CRASHED, "exited with code 0 during the probes"),
]


def test_the_end_of_a_process_is_a_crash_unless_someone_asked_for_it(local: Bench) -> None:
    with watched(local, started(local, "hang")) as watching:
        for end, state, words in ENDS:
            ending = watching.gone(end, " during the probes")
            assert (ending.state, words in ending.reason) == (state, True), ending
