"""This machine as a host: what `test_contract` does not cover, because SSH has another way to do it."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.errors import HostUnreachable
from launcher.transport.base import Command
from launcher.transport.local import STDERR_KEPT, LocalTransport, feed_in_background, start_proxy


def sh(text: str, **fields: object) -> Command:
    return Command(argv=("sh", "-c", text), label="test", **fields)  # type: ignore[arg-type]


def is_gone(pid: int) -> bool:
    for _ in range(1000):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_the_name_is_the_one_that_the_user_gave() -> None:
    assert (LocalTransport().name, LocalTransport("box").name) == ("local", "box")


def test_a_missing_home_folder_is_replaced_by_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "gone"))
    assert LocalTransport().run(sh("pwd")).stdout == b"/\n"


def test_a_command_runs_in_a_session_of_its_own() -> None:
    result = LocalTransport().run(sh("cut -d' ' -f6 /proc/self/stat; echo $$"))
    session, pid = map(int, result.stdout.split())
    assert session == pid != os.getsid(0)


def test_ctrl_c_ends_the_command_that_does_not_receive_it(tmp_path: Path) -> None:
    def interrupt() -> None:
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGUSR1)

    def raise_interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGUSR1, raise_interrupt)
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            LocalTransport().run(sh("echo $$ >new; mv new pid; exec sleep 600", cwd=str(tmp_path)))
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_a_stream_that_was_closed_early_has_no_further_output() -> None:
    stream = LocalTransport().stream(sh("echo x; exec sleep 600"))
    next(chunk for chunk in stream if chunk)
    stream.close()
    assert list(stream) == []
    assert stream.result().exit == -signal.SIGTERM


def test_only_the_end_of_a_long_error_output_is_kept() -> None:
    text = f"head -c {2 * STDERR_KEPT} /dev/zero >&2; echo last >&2"
    stderr = LocalTransport().stream(sh(text)).result().stderr
    assert len(stderr) == STDERR_KEPT
    assert stderr.endswith(b"last\n")


def test_a_stream_of_a_process_that_closed_its_output_waits_for_its_end() -> None:
    stream = LocalTransport().stream(sh("exec >&- 2>&-; sleep 0.7; exit 4"))
    assert b"" in list(stream)
    assert stream.result().exit == 4


@pytest.mark.parametrize("host", ["x" * 64 + ".invalid", "no such host", "a..b", "\0"])
def test_a_name_without_an_address_is_unreachable(host: str) -> None:
    """No name server is asked: none of these is a host name."""
    with pytest.raises(HostUnreachable, match="cannot connect"):
        LocalTransport("box").connect(host, 80, 5)


def test_a_tcp_connection_sends_small_packets_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        stream = LocalTransport().connect("127.0.0.1", server.getsockname()[1], 5)
        with stream:
            assert stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    os.close(ends[0])


def test_input_larger_than_a_pipe_is_written_without_waiting(pipe: tuple[int, int]) -> None:
    data = os.urandom(1 << 20)
    feed_in_background(os.fdopen(pipe[1], "wb"), data)
    received = b""
    while piece := os.read(pipe[0], 1 << 16):
        received += piece
    assert received == data


def test_empty_input_closes_the_pipe_at_once(pipe: tuple[int, int]) -> None:
    writer = os.fdopen(pipe[1], "wb")
    feed_in_background(writer, b"")
    assert writer.closed


def test_a_proxy_command_is_the_other_end_of_a_socket() -> None:
    proxy = start_proxy("tr a-z A-Z")
    proxy.stream.sendall("héllo".encode())
    proxy.stream.shutdown(socket.SHUT_WR)
    assert proxy.stream.recv(100) == "HéLLO".encode()
    proxy.close()
    proxy.close()
    assert is_gone(proxy.process.pid)


def test_the_complaint_of_a_proxy_is_the_end_of_its_error_output() -> None:
    proxy = start_proxy("sh -c 'printf x%.0s $(seq 600) >&2; printf \"\\377 no route\\n\" >&2'")
    proxy.process.wait()
    complaint = proxy.complaint()
    assert len(complaint) == 500
    assert complaint.endswith("x\N{REPLACEMENT CHARACTER} no route")
    proxy.close()


def test_closing_a_proxy_ends_what_it_started() -> None:
    proxy = start_proxy("sh -c 'sleep 600 & echo $!; wait'")
    child = int(proxy.stream.recv(100))
    proxy.close()
    assert is_gone(child)
