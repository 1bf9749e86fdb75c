"""A forwarded stream behaves as the socket of a TCP connection does."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from launcher.transport.ssh import SshTransport
from tests.support.ssh_logins import target_of
from tests.support.sshd import Sshd

pytestmark = pytest.mark.sshd
LOOPBACK = "127.0.0.1"


@contextmanager
def peer(transport: SshTransport) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A forwarded stream, and its other end."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        stream = transport.connect(LOOPBACK, listener.getsockname()[1], 5)
        stream.settimeout(20)
        with stream, listener.accept()[0] as other:
            other.settimeout(20)
            yield stream, other


def test_bytes_arrive_in_the_buffer_of_the_caller(ssh_transport: SshTransport) -> None:
    with peer(ssh_transport) as (stream, other):
        other.sendall(b"four")
        buffer = bytearray(b"........")
        assert stream.recv_into(buffer, 2) == 2
        assert stream.recv_into(memoryview(buffer)[4:]) == 2
        assert buffer == b"fo..ur.."


def test_the_end_of_the_other_side_is_an_empty_read_and_the_own_side_still_sends(ssh_transport: SshTransport) -> None:
    with peer(ssh_transport) as (stream, other):
        other.sendall(b"last")
        other.shutdown(socket.SHUT_WR)
        assert b"".join(iter(lambda: stream.recv(2), b"")) == b"last"
        stream.sendall(b"answer")
        assert other.recv(100) == b"answer"


def test_the_own_end_reaches_the_other_side(ssh_transport: SshTransport) -> None:
    with peer(ssh_transport) as (stream, other):
        stream.shutdown(socket.SHUT_WR)
        assert other.recv(1) == b""
        other.sendall(b"answer")
        assert stream.recv(100) == b"answer"
        with pytest.raises(BrokenPipeError):
            stream.sendall(b"x")


def test_a_stream_is_readable_when_bytes_have_arrived_and_not_before(ssh_transport: SshTransport) -> None:
    with peer(ssh_transport) as (stream, other):
        assert select.select([stream], [], [], 0)[0] == []
        other.sendall(b"x")
        assert select.select([stream], [], [], 20)[0] == [stream]
        assert stream.recv(100) == b"x"
        other.close()
        assert select.select([stream], [], [], 20)[0] == [stream]


def test_a_timeout_applies_to_each_later_call(ssh_transport: SshTransport) -> None:
    with peer(ssh_transport) as (stream, _):
        stream.settimeout(0.05)
        assert stream.gettimeout() == 0.05
        with pytest.raises(TimeoutError):
            stream.recv(1)
        with pytest.raises(TimeoutError):  # the other side does not read
            stream.sendall(bytes(64 << 20))
        stream.settimeout(None)
        assert stream.gettimeout() is None


def test_a_closed_stream_sends_nothing_and_ends_the_other_side(ssh_transport: SshTransport) -> None:
    with peer(ssh_transport) as (stream, other):
        stream.close()
        stream.close()
        assert other.recv(1) == b""
        with pytest.raises(BrokenPipeError):
            stream.send(b"x")


def test_the_peer_is_the_address_as_the_host_sees_it(ssh_transport: SshTransport) -> None:
    with peer(ssh_transport) as (stream, other):
        assert stream.getpeername() == other.getsockname()


def test_lost_connection_is_not_a_clean_end_of_a_forwarded_stream(start_sshd: Callable[..., Sshd]) -> None:
    server = start_sshd("victim")
    transport = SshTransport(target_of(server))
    with peer(transport) as (stream, other):
        other.sendall(b"half an answer")
        assert stream.recv(100) == b"half an answer"
        server.kill_sessions()
        with pytest.raises(ConnectionResetError):
            stream.recv(100)
        with pytest.raises(BrokenPipeError):
            stream.sendall(b"x")
    transport.close()
