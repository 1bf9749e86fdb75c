"""Making a connection: host keys, jump hosts, busy servers and the socket below, with real sshds."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import paramiko
import pytest
from msgspec.structs import replace

from launcher.clock import SystemClock
from launcher.errors import HostUnreachable
from launcher.transport.ssh import SshTransport
from launcher.transport.ssh_config import SshRequest, resolve_target
from launcher.transport.ssh_dial import Connection, Timing, dial, unreachable
from launcher.transport.target import SshTarget, parse_destination
from tests.support import sshd
from tests.support.ssh_logins import ECHO, can_log_in, login_error, target_of
from tests.support.sshd import Sshd

pytestmark = pytest.mark.sshd
StartSshd = Callable[..., Sshd]


def with_known_hosts(target: SshTarget, directory: Path, *lines: str) -> SshTarget:
    file = directory / "kh"
    file.write_text("".join(f"{line}\n" for line in lines))
    return replace(target, known_hosts=(file,))


# --- host keys


def test_unknown_host_key_is_refused_with_the_command_that_accepts_it(target: SshTarget, tmp_path: Path) -> None:
    error = login_error(with_known_hosts(target, tmp_path))
    assert "not in known_hosts" in error.message
    assert "SHA256:" in error.message
    assert error.hint.endswith(target.command("-o", "StrictHostKeyChecking=ask"))


def test_unknown_host_key_is_accepted_where_the_user_configured_that(target: SshTarget, tmp_path: Path) -> None:
    assert can_log_in(replace(with_known_hosts(target, tmp_path), accept_unknown=True))


def test_changed_host_key_is_refused_with_the_line_of_the_old_key(
    target: SshTarget, sshd_server: Sshd, tmp_path: Path
) -> None:
    sshd.keygen(tmp_path / "other")
    other = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    changed = with_known_hosts(target, tmp_path, "# mine", f"{sshd_server.known_hosts_name} {other}")
    for accept_unknown in (False, True):
        error = login_error(replace(changed, accept_unknown=accept_unknown))
        assert "CHANGED" in error.message
        assert f"{tmp_path / 'kh'}:2" in error.message
        assert "ssh-keygen" in error.hint


def test_revoked_host_key_is_refused(target: SshTarget, sshd_server: Sshd, tmp_path: Path) -> None:
    name, key = sshd_server.known_hosts_name, sshd_server.host_key
    error = login_error(with_known_hosts(target, tmp_path, f"{name} {key}", f"@revoked * {key}"))
    assert "revoked" in error.message
    assert "kh:2" in error.message


def test_lines_of_a_certificate_authority_cause_only_a_warning(
    target: SshTarget, sshd_server: Sshd, tmp_path: Path
) -> None:
    name, key = sshd_server.known_hosts_name, sshd_server.host_key
    transport = SshTransport(with_known_hosts(target, tmp_path, f"@cert-authority * {key}", f"{name} {key}"))
    assert transport.run(ECHO).exit == 0
    assert len(transport.warnings) == 1
    assert "kh:1" in transport.warnings[0]
    transport.close()


def test_certificate_authority_alone_does_not_make_a_key_known(
    target: SshTarget, sshd_server: Sshd, tmp_path: Path
) -> None:
    error = login_error(with_known_hosts(target, tmp_path, f"@cert-authority * {sshd_server.host_key}"))
    assert "kh:1" in error.message


def test_listed_key_type_is_negotiated_when_the_server_has_several(start_sshd: StartSshd, tmp_path: Path) -> None:
    sshd.keygen(tmp_path / "ecdsa", "-t", "ecdsa")
    server = start_sshd("two-keys", f"HostKey {tmp_path / 'ecdsa'}")
    key = " ".join((tmp_path / "ecdsa.pub").read_text().split()[:2])
    assert can_log_in(with_known_hosts(target_of(server), tmp_path, f"{server.known_hosts_name} {key}"))
    assert can_log_in(target_of(server))


def test_rsa_host_key_is_matched_by_its_plain_type(start_sshd: StartSshd, tmp_path: Path) -> None:
    sshd.keygen(tmp_path / "rsa", "-t", "rsa", "-b", "2048")
    server = start_sshd("rsa", f"HostKey {tmp_path / 'rsa'}")
    key = " ".join((tmp_path / "rsa.pub").read_text().split()[:2])
    assert can_log_in(with_known_hosts(target_of(server), tmp_path, f"{server.known_hosts_name} {key}"))


# --- jump hosts and proxies


def test_chain_of_jump_hosts_reaches_the_target(start_sshd: StartSshd, target: SshTarget) -> None:
    first = target_of(start_sshd("first"))
    second = replace(target_of(start_sshd("second")), via=first)
    assert can_log_in(replace(target, via=second))


def test_jump_host_from_the_configuration_is_used(start_sshd: StartSshd, sshd_server: Sshd, tmp_path: Path) -> None:
    jump = start_sshd("jump")
    config = tmp_path / "config"
    block = sshd.client_config("far", sshd_server.port, sshd_server.directory, "ProxyJump jump")
    config.write_text(block + jump.config.read_text())
    assert can_log_in(resolve_target(SshRequest(destination=parse_destination("far")), config=config))
    assert "Accepted publickey" in jump.log


def test_jump_host_that_cannot_reach_the_target_is_named(target: SshTarget, unused_port: int) -> None:
    error = login_error(replace(target, name="far", port=unused_port, via=target))
    assert f"`{target.name}` cannot reach" in error.message


def test_host_key_behind_a_jump_host_is_checked(start_sshd: StartSshd, target: SshTarget, tmp_path: Path) -> None:
    assert (
        "not in known_hosts"
        in login_error(replace(with_known_hosts(target, tmp_path), via=target_of(start_sshd("jump")))).message
    )


def test_proxy_command_may_use_the_shell(target: SshTarget, tmp_path: Path) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(RELAY)
    proxy = f'python3 "{relay}" {target.port} 2>/dev/null'
    assert can_log_in(
        replace(target, address="nowhere.invalid", host_key_alias=target.host_key_name, proxy_command=proxy)
    )


def test_error_output_of_a_failing_proxy_command_is_shown(target: SshTarget) -> None:
    error = login_error(replace(target, proxy_command="sh -c 'echo no route today >&2; exit 1'"), Timing(attempts=1))
    assert "no route today" in error.message


def test_refused_port_is_reported_as_such(target: SshTarget, unused_port: int) -> None:
    assert "refuses connections" in login_error(replace(target, port=unused_port)).message


def test_name_without_an_address_is_reported(target: SshTarget) -> None:
    # no name server is queried: a label of more than 63 characters is invalid
    assert "cannot be resolved" in login_error(replace(target, address=f"{'x' * 64}.invalid")).message
    assert "cannot be resolved" in unreachable(target, socket.gaierror(-2, "Name or service not known")).message


# --- busy servers


def test_busy_server_is_retried(start_sshd: StartSshd) -> None:
    server = start_sshd("busy", "MaxStartups 2:100:2")
    occupants = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
    assert all(connection.recv(4) == b"SSH-" for connection in occupants)
    clock = OccupantsLeave(occupants)
    transport = SshTransport(target_of(server), clock=clock)
    assert transport.run(ECHO).stdout == b"in\n"
    assert clock.slept
    transport.close()


def test_server_that_stays_busy_is_reported(start_sshd: StartSshd) -> None:
    server = start_sshd("busy", "MaxStartups 1:100:1")
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        assert connection.recv(4) == b"SSH-"
        assert "before the login" in login_error(target_of(server), Timing(attempts=2)).message


@pytest.fixture
def connection(sshd_server: Sshd) -> Iterator[Connection]:
    opened = dial(target_of(sshd_server), Timing(), SystemClock())
    yield opened
    opened.close()


# --- the connection below


def socket_of(connection: Connection) -> socket.socket:
    tcp = connection.transport.sock
    assert isinstance(tcp, socket.socket)
    return tcp


def test_small_packets_are_sent_without_delay(connection: Connection) -> None:
    assert socket_of(connection).getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_kernel_drops_a_dead_peer(connection: Connection) -> None:
    assert socket_of(connection).getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 15_000
    assert socket_of(connection).getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_our_connections_never_rekey_and_other_connections_still_do(connection: Connection) -> None:
    packetizer = connection.transport.packetizer
    assert (packetizer.REKEY_BYTES, packetizer.REKEY_PACKETS) == (1 << 45, 1 << 45)
    assert paramiko.packet.Packetizer.REKEY_BYTES < 1 << 45


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


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (None, "was closed by the other side"),
        (EOFError(), "was closed by the other side"),
        (TimeoutError(), "did not answer"),
        (ConnectionRefusedError(), "no sshd is listening there"),
        (OSError("No route to host"), "failed: No route to host"),
    ],
)
def test_every_error_of_a_connection_names_the_host_and_a_command_that_helps(
    target: SshTarget, error: BaseException | None, words: str
) -> None:
    reported = unreachable(target, error)
    assert words in reported.message
    assert f"{target.address}:{target.port}" in reported.message
    assert (reported.where, reported.hint) == (target.name, target.command())


def test_an_error_that_is_worded_already_is_kept(target: SshTarget) -> None:
    error = HostUnreachable("worded")
    assert unreachable(target, error) is error


class OccupantsLeave(SystemClock):
    """A clock whose first sleep closes the connections that occupy the server."""

    def __init__(self, occupants: list[socket.socket]) -> None:
        self.occupants = occupants
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        for connection in self.occupants:
            connection.close()
        super().sleep(seconds)


RELAY = """
import os, socket, sys, threading
server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def up():
    while data := os.read(0, 65536):
        server.sendall(data)
    server.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while data := server.recv(65536):
    os.write(1, data)
"""


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
