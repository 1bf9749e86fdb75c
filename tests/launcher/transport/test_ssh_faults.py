"""Faults of the network, which several modules notice together, with real sshds that are stopped and killed."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from launcher.errors import HostUnreachable
from launcher.transport.base import Command
from launcher.transport.ssh import SshTransport
from launcher.transport.ssh_dial import Timing
from tests.support.ssh_logins import target_of
from tests.support.sshd import Sshd

StartSshd = Callable[..., Sshd]
QUICK = Timing(connect=5, keepalive=0.1, silence=0.4)


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


# --- connections that end


def test_killed_connection_is_noticed_during_a_command(server: Sshd, victim: SshTransport) -> None:
    thread, raised = started(victim)
    _wait_for_session(server)
    server.kill_sessions()
    thread.join(20)
    assert [type(error) for error in raised] == [HostUnreachable]
    assert isinstance(raised[0], HostUnreachable)
    assert raised[0].where == "victim"


def _wait_for_session(server: Sshd) -> None:
    for _ in range(10_000):
        if "Starting session: command" in server.log:
            return
    raise AssertionError("the command did not start")
