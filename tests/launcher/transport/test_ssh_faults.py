"""Network faults and the defects of paramiko. Tested with real sshds that are stopped and killed."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import paramiko
import pytest
from msgspec.structs import replace

from launcher.clock import SystemClock
from launcher.errors import HostCommandFailed, HostUnreachable, TransportTimeout
from launcher.transport.base import Command
from launcher.transport.ssh import SshTransport
from launcher.transport.ssh_config import SshRequest, resolve_target
from launcher.transport.ssh_dial import Connection, Timing, dial
from launcher.transport.target import SshTarget, parse_destination
from tests.support.sshd import Sshd

StartSshd = Callable[..., Sshd]
QUICK = Timing(connect=5, keepalive=0.1, silence=0.4)
ECHO = Command(argv=("echo", "in"), label="test")


def target_of(server: Sshd) -> SshTarget:
    return resolve_target(SshRequest(destination=parse_destination(server.alias)), config=server.config)


@pytest.fixture
def connection(sshd_server: Sshd) -> Iterator[Connection]:
    opened = dial(target_of(sshd_server), Timing(), SystemClock())
    yield opened
    opened.close()


@pytest.fixture
def server(start_sshd: StartSshd) -> Sshd:
    """A server that the test stops or kills."""
    return start_sshd("victim")


@pytest.fixture
def victim(server: Sshd) -> Iterator[SshTransport]:
    transport = SshTransport(target_of(server), timing=QUICK)
    transport.open()
    yield transport
    server.kill_sessions(signal.SIGCONT)
    transport.close()


def started(transport: SshTransport) -> tuple[threading.Thread, list[BaseException]]:
    """Start a long command in a thread; returns the thread, and the list that receives what it raises."""
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            transport.run(Command(argv=("sleep", "30"), label="test", timeout=60))
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread, raised


# --- paramiko's defects


def test_small_packets_are_sent_without_delay(connection: Connection) -> None:
    assert connection.transport.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_kernel_drops_a_dead_peer(connection: Connection) -> None:
    assert connection.transport.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 15_000
    assert connection.transport.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_our_connections_never_rekey_and_other_connections_still_do(connection: Connection) -> None:
    packetizer = connection.transport.packetizer
    assert (packetizer.REKEY_BYTES, packetizer.REKEY_PACKETS) == (1 << 45, 1 << 45)
    assert paramiko.packet.Packetizer.REKEY_BYTES < 1 << 45


def test_server_may_rekey_during_a_command(start_sshd: StartSshd) -> None:
    transport = SshTransport(target_of(start_sshd("rekey", "RekeyLimit 1M")), timing=QUICK)
    data = os.urandom(4 << 20)
    result = transport.run(Command(argv=("cat",), label="test", stdin=data))
    transport.close()
    assert hashlib.sha256(result.stdout).digest() == hashlib.sha256(data).digest()


def test_frozen_server_is_noticed_while_a_command_runs(server: Sshd, victim: SshTransport) -> None:
    thread, raised = started(victim)
    server.kill_sessions(signal.SIGSTOP)
    thread.join(20)
    assert [type(error) for error in raised] == [HostUnreachable]


def test_frozen_server_is_noticed_while_we_send(server: Sshd, victim: SshTransport) -> None:
    server.kill_sessions(signal.SIGSTOP)
    with pytest.raises(HostUnreachable):
        victim.run(Command(argv=("cat",), label="test", stdin=bytes(32 << 20), timeout=60))


def test_frozen_server_is_noticed_by_a_stream(server: Sshd, victim: SshTransport) -> None:
    stream = victim.stream(Command(argv=("sh", "-c", "echo x; sleep 30"), label="test"))
    chunks = iter(stream)
    assert next(chunk for chunk in chunks if chunk) == b"x\n"
    server.kill_sessions(signal.SIGSTOP)
    with pytest.raises(HostUnreachable):
        for _ in chunks:
            pass
    stream.close()


def test_quiet_connection_to_a_living_server_is_kept(server: Sshd, victim: SshTransport) -> None:
    quiet = Command(argv=("sleep", "1.2"), label="test")  # three times the limit for a silent server
    assert victim.run(quiet).exit == 0
    assert server.log.count("Accepted publickey") == 1


def test_port_that_accepts_and_sends_nothing_is_an_error(sshd_server: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = replace(target_of(sshd_server), port=listener.getsockname()[1])
        with pytest.raises(HostUnreachable, match="before the login"):
            SshTransport(target, timing=Timing(connect=0.3)).open()


def test_port_with_another_protocol_is_an_error(sshd_server: Sshd) -> None:
    with _answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        target = replace(target_of(sshd_server), port=port)
        with pytest.raises(HostUnreachable, match="before the login"):
            SshTransport(target, timing=Timing(connect=2, attempts=1)).open()


# --- connections that end


def test_killed_connection_is_noticed_during_a_command(server: Sshd, victim: SshTransport) -> None:
    thread, raised = started(victim)
    _wait_for_session(server)
    server.kill_sessions()
    thread.join(20)
    assert [type(error) for error in raised] == [HostUnreachable]
    assert isinstance(raised[0], HostUnreachable)
    assert raised[0].where == "victim"


def test_next_command_connects_again(server: Sshd, victim: SshTransport) -> None:
    server.kill_sessions()
    with suppress(HostUnreachable):  # the loss is noticed before this command or during it
        victim.run(Command(argv=("sleep", "1"), label="test", timeout=30))
    assert victim.run(ECHO).stdout == b"in\n"


def test_stopped_server_is_unreachable(server: Sshd, victim: SshTransport) -> None:
    server.stop()
    for _ in range(2):
        with pytest.raises(HostUnreachable):
            victim.run(ECHO)


def test_lost_connection_is_not_a_clean_end_of_a_forwarded_stream(server: Sshd, victim: SshTransport) -> None:
    with _answering(b"half an answer", then_close=False) as port:
        stream = victim.connect("127.0.0.1", port, 5)
        stream.settimeout(20)
        assert stream.recv(100) == b"half an answer"
        server.kill_sessions()
        with pytest.raises(ConnectionResetError):
            stream.recv(100)
        with pytest.raises(BrokenPipeError):
            stream.sendall(b"x")


def test_closed_transport_stays_closed(victim: SshTransport) -> None:
    victim.close()
    victim.close()
    with pytest.raises(HostUnreachable, match="closed"):
        victim.run(ECHO)


def test_forbidden_forwarding_is_not_a_refused_port(start_sshd: StartSshd) -> None:
    transport = SshTransport(target_of(start_sshd("closed", "AllowTcpForwarding no")))
    with pytest.raises(HostCommandFailed, match="forbids"):
        transport.connect("127.0.0.1", 1, 5)
    transport.close()


def test_streams_read_to_the_end_free_their_session(ssh_transport: SshTransport) -> None:
    for _ in range(10):
        assert b"".join(ssh_transport.stream(replace(ECHO, timeout=5))) == b"in\n"


def test_no_free_session_is_a_timeout(ssh_transport: SshTransport) -> None:
    streams = [ssh_transport.stream(Command(argv=("sleep", "30"), label="test")) for _ in range(8)]
    with pytest.raises(TransportTimeout, match="no free SSH session"):
        ssh_transport.run(replace(ECHO, timeout=0.1))
    for stream in streams:
        stream.close()
    assert ssh_transport.run(ECHO).stdout == b"in\n"


# --- login shells


def test_greeting_of_the_login_shell_is_not_part_of_the_output(start_sshd: StartSshd, tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("echo Welcome; echo careful >&2\n")
    server = start_sshd("chatty", f"ForceCommand {_shell(tmp_path)}")
    transport = SshTransport(target_of(server))
    result = transport.run(Command(argv=("sh", "-c", "echo out; echo err >&2"), label="test"))
    stream = transport.stream(ECHO)
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
    assert b"".join(stream) == b"in\n"
    assert stream.result().exit == 0
    transport.close()


def test_message_of_an_account_without_a_shell_is_shown(start_sshd: StartSshd) -> None:
    server = start_sshd("nologin", "ForceCommand echo This account is not available.; exit 1")
    transport = SshTransport(target_of(server))
    with pytest.raises(HostCommandFailed, match="This account is not available"):
        transport.run(ECHO)
    with pytest.raises(HostCommandFailed, match="This account is not available"):
        transport.stream(ECHO).result()
    transport.close()


def test_silent_refusal_is_not_an_empty_output(start_sshd: StartSshd) -> None:
    transport = SshTransport(target_of(start_sshd("silent", "ForceCommand exit 0")))
    with pytest.raises(HostCommandFailed, match="login shell"):
        transport.run(ECHO)
    transport.close()


def _shell(directory: Path) -> Path:
    """Write a login shell that reads a .bashrc, as Debian's bash does for ssh commands."""
    script = directory / "shell"
    script.write_text(f'#!/bin/sh\n. {directory / ".bashrc"}\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n')
    script.chmod(0o755)
    return script


def _wait_for_session(server: Sshd) -> None:
    for _ in range(10_000):
        if "Starting session: command" in server.log:
            return
    raise AssertionError("the command did not start")


@contextmanager
def _answering(data: bytes, *, then_close: bool = True) -> Iterator[int]:
    """Open a port that sends these bytes to its first connection."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(data)
                if not then_close:
                    done.wait(30)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        done.set()
        thread.join(5)
