"""Commands and streams over one connection: sessions are shared, a lost connection is made anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from msgspec.structs import replace

from launcher.errors import HostCommandFailed, HostUnreachable, TransportTimeout
from launcher.transport.base import Command
from launcher.transport.ssh import SshTransport
from launcher.transport.target import SshTarget
from tests.support.ssh_logins import ECHO, target_of
from tests.support.sshd import Sshd

pytestmark = pytest.mark.sshd
StartSshd = Callable[..., Sshd]


@pytest.fixture
def server(start_sshd: StartSshd) -> Sshd:
    """A server that the test stops or kills."""
    return start_sshd("victim")


@pytest.fixture
def victim(server: Sshd) -> Iterator[SshTransport]:
    transport = SshTransport(target_of(server))
    transport.open()
    yield transport
    transport.close()


def test_twenty_concurrent_commands_share_ten_sessions(ssh_transport: SshTransport) -> None:
    command = Command(argv=("sh", "-c", "sleep 0.1; echo $1", "sh", "x"), label="test")
    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(ssh_transport.run, [command] * 20))
    assert [result.stdout for result in results] == [b"x\n"] * 20


def test_commands_wait_for_a_server_with_few_sessions(start_sshd: StartSshd) -> None:
    transport = SshTransport(target_of(start_sshd("narrow", "MaxSessions 2")))
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(transport.run, [ECHO] * 6))
    transport.close()
    assert [result.stdout for result in results] == [b"in\n"] * 6


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


def test_a_server_that_opens_no_further_session_is_reported(start_sshd: StartSshd) -> None:
    transport = SshTransport(target_of(start_sshd("none", "MaxSessions 0")))
    with pytest.raises(HostCommandFailed, match="did not open another SSH session") as caught:
        transport.run(replace(ECHO, timeout=0.1))
    assert "MaxSessions" in caught.value.hint
    transport.close()


def test_a_transport_that_was_never_used_has_a_name_and_no_warnings(target: SshTarget) -> None:
    transport = SshTransport(target)
    assert (transport.name, transport.warnings) == (target.name, ())
    transport.close()
    with pytest.raises(HostUnreachable, match="already closed"):
        transport.open()
