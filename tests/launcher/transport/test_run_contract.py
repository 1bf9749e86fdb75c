"""The requests of a run have answers of one form over /bin/sh, a real sshd and a recorded run.

`test_contract` tests the other promises of the two transports that execute programs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from msgspec import Struct

from launcher.flows.launch.stop_runs import stop
from launcher.run import remote
from launcher.run.frames import Ended, Frame, FrameReader, LogBytes
from launcher.run.store import Run
from launcher.transport.base import Transport
from launcher.transport.local import LocalTransport
from launcher.transport.recorded import ReplayTransport
from tests.support.bench import Bench, bench

TRANSPORTS = ("local", "ssh", "replay")


class Subject(Struct, frozen=True):
    """A run, and the transport that is under test."""

    run: Run
    transport: Transport
    bench: Bench


def launched(request: pytest.FixtureRequest, folder: Path, mode: str) -> Iterator[Subject]:
    kind = request.param
    host: Transport = request.getfixturevalue("ssh_transport") if kind == "ssh" else LocalTransport()
    launcher = bench(folder, host)
    run = launcher.launch(mode).run
    assert run is not None
    yield Subject(run, ReplayTransport(run.folder) if kind == "replay" else host, launcher)
    if mode != "crash":
        stop(launcher.context, run, drain=0.2)


@pytest.fixture(params=TRANSPORTS)
def crashed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    yield from launched(request, tmp_path, "crash")


@pytest.fixture(params=TRANSPORTS)
def ready(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    yield from launched(request, tmp_path, "healthy")


def followed(subject: Subject, offset: int = 0) -> list[Frame]:
    stream, reader = subject.transport.stream(remote.follow_command(subject.run, offset)), FrameReader()
    frames = [frame for chunk in stream for frame in reader.feed(chunk)]
    assert stream.result().exit == 0 and stream.result().stdout == b""
    stream.close()
    stream.close()
    return frames


def test_the_whole_log_arrives_before_the_end(crashed: Subject) -> None:
    frames = followed(crashed)
    data = b"".join(frame.data for frame in frames if isinstance(frame, LogBytes))
    assert data == crashed.run.log.read_bytes()
    assert isinstance(frames[-1], Ended)
    assert (frames[-1].state, frames[-1].code) == ("exited", crashed.run.info["exit"])


def test_a_live_run_yields_empty_chunks_while_there_is_no_output(ready: Subject) -> None:
    stream = ready.transport.stream(remote.follow_command(ready.run, 0))
    chunks = iter(stream)
    reader = FrameReader()
    for _ in range(200):
        frames = list(reader.feed(next(chunks)))
        assert not any(isinstance(frame, Ended) for frame in frames)
        if next(chunks) == b"":
            break
    else:
        pytest.fail("the stream never yielded an empty chunk")
    stream.close()


def test_a_look_has_one_form_on_every_transport(ready: Subject) -> None:
    look = remote.look(ready.transport, ready.run)
    assert (look.run, look.state, look.listening) == (ready.run.id, "running", True)
    assert look.pid == ready.run.info["pid"] and look.log_bytes > 0


def test_facts_have_one_form_on_every_transport(ready: Subject) -> None:
    arguments = {
        "python": "",
        "env": {},
        "work_dir": str(ready.bench.folder),
        "model": "",
        "draft": "",
        "port": 0,
        "host": "",
    }
    facts = remote.host_facts(ready.transport, arguments)
    recorded = ready.run.read("facts")
    assert set(recorded) - set(facts) <= {"asked"}
    assert set(facts["host"]) == set(recorded["host"])


def test_the_server_is_reached_through_the_transport(ready: Subject) -> None:
    connection = ready.transport.connect("127.0.0.1", ready.run.plan.server_port, 5.0)
    with connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(64).startswith(b"HTTP/1.1 200")


def test_the_port_is_closed_after_a_crash(crashed: Subject) -> None:
    with pytest.raises(ConnectionRefusedError):
        crashed.transport.connect("127.0.0.1", crashed.run.plan.server_port, 5.0)


def test_closing_a_stream_ends_it(ready: Subject) -> None:
    stream = ready.transport.stream(remote.follow_command(ready.run, 0))
    next(iter(stream))
    stream.close()
    assert len(list(islice(stream, 50))) < 50  # an open stream would yield chunks forever
