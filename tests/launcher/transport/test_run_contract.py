"""What a run asks of a Transport is answered in one form over /bin/sh, a real sshd and a recorded run alike.

`test_contract` holds the two transports that execute programs to the rest of the promises.
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

WAYS = ("local", "ssh", "replay")


class Seen(Struct, frozen=True):
    """A run, and the way to the machine that it is asked over."""

    run: Run
    transport: Transport
    bench: Bench


def launched(request: pytest.FixtureRequest, folder: Path, mode: str) -> Iterator[Seen]:
    way = request.param
    host: Transport = request.getfixturevalue("ssh_transport") if way == "ssh" else LocalTransport()
    made = bench(folder, host)
    run = made.launch(mode).run
    assert run is not None
    yield Seen(run, ReplayTransport(run.folder) if way == "replay" else host, made)
    if mode != "crash":
        stop(made.context, run, drain=0.2)


@pytest.fixture(params=WAYS)
def crashed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Seen]:
    yield from launched(request, tmp_path, "crash")


@pytest.fixture(params=WAYS)
def ready(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Seen]:
    yield from launched(request, tmp_path, "healthy")


def followed(seen: Seen, offset: int = 0) -> list[Frame]:
    stream, reader = seen.transport.stream(remote.follow_command(seen.run, offset)), FrameReader()
    frames = [frame for chunk in stream for frame in reader.feed(chunk)]
    assert stream.result().exit == 0 and stream.result().stdout == b""
    stream.close()
    stream.close()
    return frames


def test_the_whole_log_comes_and_then_the_end(crashed: Seen) -> None:
    frames = followed(crashed)
    data = b"".join(frame.data for frame in frames if isinstance(frame, LogBytes))
    assert data == crashed.run.log.read_bytes()
    assert isinstance(frames[-1], Ended)
    assert (frames[-1].state, frames[-1].code) == ("exited", crashed.run.info["exit"])


def test_a_run_that_goes_on_beats_while_there_is_nothing(ready: Seen) -> None:
    stream = ready.transport.stream(remote.follow_command(ready.run, 0))
    chunks = iter(stream)
    reader = FrameReader()
    for _ in range(200):
        frames = list(reader.feed(next(chunks)))
        assert not any(isinstance(frame, Ended) for frame in frames)
        if next(chunks) == b"":
            break
    else:
        pytest.fail("the stream never beat")
    stream.close()


def test_a_look_has_one_form(ready: Seen) -> None:
    look = remote.look(ready.transport, ready.run)
    assert (look.run, look.state, look.listening) == (ready.run.id, "running", True)
    assert look.pid == ready.run.info["pid"] and look.log_bytes > 0


def test_facts_have_one_form(ready: Seen) -> None:
    asked = {
        "python": "",
        "env": {},
        "work_dir": str(ready.bench.folder),
        "model": "",
        "draft": "",
        "port": 0,
        "host": "",
    }
    facts = remote.host_facts(ready.transport, asked)
    recorded = ready.run.read("facts")
    assert set(recorded) - set(facts) <= {"asked"}
    assert set(facts["host"]) == set(recorded["host"])


def test_the_server_is_reached_through_the_transport(ready: Seen) -> None:
    connection = ready.transport.connect("127.0.0.1", ready.run.plan.server_port, 5.0)
    with connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(64).startswith(b"HTTP/1.1 200")


def test_nobody_listens_after_a_crash(crashed: Seen) -> None:
    with pytest.raises(ConnectionRefusedError):
        crashed.transport.connect("127.0.0.1", crashed.run.plan.server_port, 5.0)


def test_closing_a_stream_ends_it(ready: Seen) -> None:
    stream = ready.transport.stream(remote.follow_command(ready.run, 0))
    next(iter(stream))
    stream.close()
    assert len(list(islice(stream, 50))) < 50  # one that went on would beat for ever
