"""Logging in: host keys, keys and agents, jump hosts, busy servers. Tested with real sshds."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from launcher.clock import SystemClock
from launcher.errors import HostUnreachable
from launcher.transport.base import Command
from launcher.transport.ssh import SshTransport
from launcher.transport.ssh_config import SshRequest, resolve_target
from launcher.transport.ssh_dial import Timing, unreachable
from launcher.transport.target import SshTarget, parse_destination
from tests.support import sshd
from tests.support.sshd import Sshd

StartSshd = Callable[..., Sshd]
ECHO = Command(argv=("echo", "in"), label="test")


@pytest.fixture
def target(sshd_server: Sshd) -> SshTarget:
    return target_of(sshd_server)


def target_of(server: Sshd) -> SshTarget:
    return resolve_target(SshRequest(destination=parse_destination(server.alias)), config=server.config)


def can_log_in(target: SshTarget, timing: Timing | None = None) -> bool:
    transport = SshTransport(target, timing=timing)
    try:
        return transport.run(ECHO).stdout == b"in\n"
    finally:
        transport.close()


def login_error(target: SshTarget, timing: Timing | None = None) -> HostUnreachable:
    transport = SshTransport(target, timing=timing)
    with pytest.raises(HostUnreachable) as caught:
        transport.run(ECHO)
    transport.close()
    assert caught.value.where == target.name
    return caught.value


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


# --- client keys


def test_agent_with_many_keys_does_not_prevent_the_identity_file(target: SshTarget, tmp_path: Path) -> None:
    keys = [_new_key(tmp_path / f"agent{number}") for number in range(8)]
    with _agent(tmp_path, *keys) as agent:
        assert can_log_in(replace(target, identity_agent=agent, identities_only=False))


def test_agent_key_is_used_without_an_identity_file(target: SshTarget, sshd_server: Sshd, tmp_path: Path) -> None:
    with _agent(tmp_path, sshd_server.client_key) as agent:
        assert can_log_in(replace(target, identity_agent=agent, identity_files=(), identities_only=False))


def test_too_many_wrong_agent_keys_are_reported(target: SshTarget, tmp_path: Path) -> None:
    keys = [_new_key(tmp_path / f"agent{number}") for number in range(8)]
    with _agent(tmp_path, *keys) as agent:
        error = login_error(replace(target, identity_agent=agent, identity_files=(), identities_only=False))
    assert "MaxAuthTries" in error.message
    assert "IdentityFile" in error.message


def test_identities_only_excludes_agent_keys(target: SshTarget, sshd_server: Sshd, tmp_path: Path) -> None:
    with _agent(tmp_path, sshd_server.client_key) as agent:
        assert "no key" in login_error(replace(target, identity_agent=agent, identity_files=())).message


def test_protected_key_without_an_agent_recommends_ssh_add(target: SshTarget, tmp_path: Path) -> None:
    locked = _new_key(tmp_path / "locked", "-N", "secret")
    assert f"ssh-add {locked}" in login_error(replace(target, identity_files=(locked,))).message


def test_protected_key_in_the_agent_is_used(target: SshTarget, sshd_server: Sshd, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.write_bytes(sshd_server.client_key.read_bytes())
    locked.chmod(0o600)
    locked.with_suffix(".pub").write_bytes(sshd_server.client_key.with_suffix(".pub").read_bytes())
    with _agent(tmp_path, sshd_server.client_key) as agent:
        subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-f", str(locked)], check=True, capture_output=True)
        assert can_log_in(replace(target, identity_files=(locked,), identity_agent=agent))


def test_wrong_keys_before_the_right_one_do_not_matter(target: SshTarget, sshd_server: Sshd, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("not a key\n")
    files = (tmp_path / "missing", broken, _new_key(tmp_path / "wrong"), sshd_server.client_key)
    assert can_log_in(replace(target, identity_files=files))


def test_every_rejected_key_is_listed(target: SshTarget, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("not a key\n")
    error = login_error(replace(target, identity_files=(broken, _new_key(tmp_path / "wrong"))))
    assert f"{broken}: unreadable" in error.message
    assert f"{tmp_path / 'wrong'}: rejected" in error.message
    assert error.hint.startswith("ssh -v")


def test_server_that_requires_a_password_is_reported(start_sshd: StartSshd) -> None:
    server = start_sshd("pw", "PubkeyAuthentication no", "PasswordAuthentication yes")
    error = login_error(target_of(server))
    assert "password" in error.message
    assert "ssh-copy-id" in error.hint


def test_key_with_a_certificate_is_accepted(start_sshd: StartSshd, tmp_path: Path) -> None:
    ca = _new_key(tmp_path / "ca")
    server = start_sshd("ca", f"TrustedUserCAKeys {ca}.pub", "AuthorizedKeysFile none")
    mine = _new_key(tmp_path / "mine")
    sign = ["ssh-keygen", "-q", "-s", str(ca), "-I", "test", "-n", getpass.getuser(), f"{mine}.pub"]
    subprocess.run(sign, check=True, capture_output=True)
    assert can_log_in(replace(target_of(server), identity_files=(mine,)))


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


def _new_key(path: Path, *options: str) -> Path:
    sshd.keygen(path, *options)
    return path


@contextmanager
def _agent(directory: Path, *keys: Path) -> Iterator[str]:
    """Start an ssh-agent that contains the keys; yields the path of its socket."""
    path = str(directory / "agent")
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()  # it prints its socket once it listens
    try:
        adding = ["ssh-add", "-q", *map(str, keys)]
        subprocess.run(adding, env={**os.environ, "SSH_AUTH_SOCK": path}, check=True, stdin=subprocess.DEVNULL)
        yield path
    finally:
        process.terminate()
        process.wait()
