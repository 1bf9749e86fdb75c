"""Getting in: host keys, keys and agents, jump hosts, crowded servers. Against real sshds."""

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
from launcher.transport.ssh_config import Wish, resolve_target
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
    return resolve_target(Wish(destination=parse_destination(server.alias)), config=server.config)


def gets_in(target: SshTarget, timing: Timing | None = None) -> bool:
    transport = SshTransport(target, timing=timing)
    try:
        return transport.run(ECHO).stdout == b"in\n"
    finally:
        transport.close()


def why_not(target: SshTarget, timing: Timing | None = None) -> HostUnreachable:
    transport = SshTransport(target, timing=timing)
    with pytest.raises(HostUnreachable) as caught:
        transport.run(ECHO)
    transport.close()
    assert caught.value.where == target.name
    return caught.value


def knowing(target: SshTarget, directory: Path, *lines: str) -> SshTarget:
    file = directory / "kh"
    file.write_text("".join(f"{line}\n" for line in lines))
    return replace(target, known_hosts=(file,))


# --- host keys


def test_unknown_host_key_is_refused_with_the_command_that_accepts_it(target: SshTarget, tmp_path: Path) -> None:
    error = why_not(knowing(target, tmp_path))
    assert "not known" in error.message
    assert "SHA256:" in error.message
    assert error.hint.endswith(target.command("-o", "StrictHostKeyChecking=ask"))


def test_unknown_host_key_is_accepted_where_the_user_configured_that(target: SshTarget, tmp_path: Path) -> None:
    assert gets_in(replace(knowing(target, tmp_path), accept_unknown=True))


def test_changed_host_key_is_refused_with_the_line_that_says_otherwise(
    target: SshTarget, sshd_server: Sshd, tmp_path: Path
) -> None:
    sshd.keygen(tmp_path / "other")
    other = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    changed = knowing(target, tmp_path, "# mine", f"{sshd_server.known_hosts_name} {other}")
    for accept_unknown in (False, True):
        error = why_not(replace(changed, accept_unknown=accept_unknown))
        assert "CHANGED" in error.message
        assert f"{tmp_path / 'kh'}:2" in error.message
        assert "ssh-keygen" in error.hint


def test_revoked_host_key_is_refused(target: SshTarget, sshd_server: Sshd, tmp_path: Path) -> None:
    name, key = sshd_server.known_hosts_name, sshd_server.host_key
    error = why_not(knowing(target, tmp_path, f"{name} {key}", f"@revoked * {key}"))
    assert "revoked" in error.message
    assert "kh:2" in error.message


def test_lines_of_a_certificate_authority_cost_a_warning_only(
    target: SshTarget, sshd_server: Sshd, tmp_path: Path
) -> None:
    name, key = sshd_server.known_hosts_name, sshd_server.host_key
    transport = SshTransport(knowing(target, tmp_path, f"@cert-authority * {key}", f"{name} {key}"))
    assert transport.run(ECHO).exit == 0
    assert len(transport.warnings) == 1
    assert "kh:1" in transport.warnings[0]
    transport.close()


def test_certificate_authority_alone_does_not_make_a_key_known(
    target: SshTarget, sshd_server: Sshd, tmp_path: Path
) -> None:
    error = why_not(knowing(target, tmp_path, f"@cert-authority * {sshd_server.host_key}"))
    assert "kh:1" in error.message


def test_listed_type_is_asked_for_when_the_server_has_several(start_sshd: StartSshd, tmp_path: Path) -> None:
    sshd.keygen(tmp_path / "ecdsa", "-t", "ecdsa")
    server = start_sshd("two-keys", f"HostKey {tmp_path / 'ecdsa'}")
    key = " ".join((tmp_path / "ecdsa.pub").read_text().split()[:2])
    assert gets_in(knowing(target_of(server), tmp_path, f"{server.known_hosts_name} {key}"))
    assert gets_in(target_of(server))


def test_rsa_host_key_is_known_under_its_plain_name(start_sshd: StartSshd, tmp_path: Path) -> None:
    sshd.keygen(tmp_path / "rsa", "-t", "rsa", "-b", "2048")
    server = start_sshd("rsa", f"HostKey {tmp_path / 'rsa'}")
    key = " ".join((tmp_path / "rsa.pub").read_text().split()[:2])
    assert gets_in(knowing(target_of(server), tmp_path, f"{server.known_hosts_name} {key}"))


# --- our keys


def test_agent_full_of_keys_does_not_keep_the_identity_file_out(target: SshTarget, tmp_path: Path) -> None:
    keys = [_new_key(tmp_path / f"agent{number}") for number in range(8)]
    with _agent(tmp_path, *keys) as agent:
        assert gets_in(replace(target, identity_agent=agent, identities_only=False))


def test_agent_serves_where_there_is_no_file(target: SshTarget, sshd_server: Sshd, tmp_path: Path) -> None:
    with _agent(tmp_path, sshd_server.client_key) as agent:
        assert gets_in(replace(target, identity_agent=agent, identity_files=(), identities_only=False))


def test_too_many_wrong_agent_keys_are_named(target: SshTarget, tmp_path: Path) -> None:
    keys = [_new_key(tmp_path / f"agent{number}") for number in range(8)]
    with _agent(tmp_path, *keys) as agent:
        error = why_not(replace(target, identity_agent=agent, identity_files=(), identities_only=False))
    assert "MaxAuthTries" in error.message
    assert "IdentityFile" in error.message


def test_identities_only_keeps_the_agent_out(target: SshTarget, sshd_server: Sshd, tmp_path: Path) -> None:
    with _agent(tmp_path, sshd_server.client_key) as agent:
        assert "no key" in why_not(replace(target, identity_agent=agent, identity_files=())).message


def test_protected_key_without_an_agent_says_ssh_add(target: SshTarget, tmp_path: Path) -> None:
    locked = _new_key(tmp_path / "locked", "-N", "secret")
    assert f"ssh-add {locked}" in why_not(replace(target, identity_files=(locked,))).message


def test_protected_key_in_the_agent_is_used(target: SshTarget, sshd_server: Sshd, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.write_bytes(sshd_server.client_key.read_bytes())
    locked.chmod(0o600)
    locked.with_suffix(".pub").write_bytes(sshd_server.client_key.with_suffix(".pub").read_bytes())
    with _agent(tmp_path, sshd_server.client_key) as agent:
        subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-f", str(locked)], check=True, capture_output=True)
        assert gets_in(replace(target, identity_files=(locked,), identity_agent=agent))


def test_wrong_keys_before_the_right_one_do_not_matter(target: SshTarget, sshd_server: Sshd, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("no key at all\n")
    files = (tmp_path / "missing", broken, _new_key(tmp_path / "wrong"), sshd_server.client_key)
    assert gets_in(replace(target, identity_files=files))


def test_every_refused_key_is_named(target: SshTarget, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("no key at all\n")
    error = why_not(replace(target, identity_files=(broken, _new_key(tmp_path / "wrong"))))
    assert f"{broken}: unreadable" in error.message
    assert f"{tmp_path / 'wrong'}: refused" in error.message
    assert error.hint.startswith("ssh -v")


def test_server_that_wants_a_password_is_told_apart(start_sshd: StartSshd) -> None:
    server = start_sshd("pw", "PubkeyAuthentication no", "PasswordAuthentication yes")
    error = why_not(target_of(server))
    assert "password" in error.message
    assert "ssh-copy-id" in error.hint


def test_key_with_a_certificate_gets_in(start_sshd: StartSshd, tmp_path: Path) -> None:
    ca = _new_key(tmp_path / "ca")
    server = start_sshd("ca", f"TrustedUserCAKeys {ca}.pub", "AuthorizedKeysFile none")
    mine = _new_key(tmp_path / "mine")
    sign = ["ssh-keygen", "-q", "-s", str(ca), "-I", "test", "-n", getpass.getuser(), f"{mine}.pub"]
    subprocess.run(sign, check=True, capture_output=True)
    assert gets_in(replace(target_of(server), identity_files=(mine,)))


# --- the way there


def test_chain_of_jump_hosts_leads_to_the_far_end(start_sshd: StartSshd, target: SshTarget) -> None:
    first = target_of(start_sshd("first"))
    second = replace(target_of(start_sshd("second")), via=first)
    assert gets_in(replace(target, via=second))


def test_jump_host_from_the_configuration_is_used(start_sshd: StartSshd, sshd_server: Sshd, tmp_path: Path) -> None:
    jump = start_sshd("jump")
    config = tmp_path / "config"
    block = sshd.client_config("far", sshd_server.port, sshd_server.directory, "ProxyJump jump")
    config.write_text(block + jump.config.read_text())
    assert gets_in(resolve_target(Wish(destination=parse_destination("far")), config=config))
    assert "Accepted publickey" in jump.log


def test_jump_host_that_cannot_reach_the_target_is_named(target: SshTarget, unused_port: int) -> None:
    error = why_not(replace(target, name="far", port=unused_port, via=target))
    assert f"`{target.name}` cannot reach" in error.message


def test_host_key_behind_a_jump_host_is_checked_too(start_sshd: StartSshd, target: SshTarget, tmp_path: Path) -> None:
    assert "not known" in why_not(replace(knowing(target, tmp_path), via=target_of(start_sshd("jump")))).message


def test_proxy_command_may_use_the_shell(target: SshTarget, tmp_path: Path) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(RELAY)
    proxy = f'python3 "{relay}" {target.port} 2>/dev/null'
    assert gets_in(replace(target, address="nowhere.invalid", host_key_alias=target.host_key_name, proxy_command=proxy))


def test_what_a_failing_proxy_command_said_is_shown(target: SshTarget) -> None:
    error = why_not(replace(target, proxy_command="sh -c 'echo no route today >&2; exit 1'"), Timing(attempts=1))
    assert "no route today" in error.message


def test_refused_port_says_that_no_sshd_listens(target: SshTarget, unused_port: int) -> None:
    assert "refuses connections" in why_not(replace(target, port=unused_port)).message


def test_name_without_an_address_says_so(target: SshTarget) -> None:
    # no name server is asked: a label of more than 63 characters is no name
    assert "cannot be resolved" in why_not(replace(target, address=f"{'x' * 64}.invalid")).message
    assert "cannot be resolved" in unreachable(target, socket.gaierror(-2, "Name or service not known")).message


# --- crowded servers


def test_twenty_commands_at_once_pass_through_ten_sessions(ssh_transport: SshTransport) -> None:
    command = Command(argv=("sh", "-c", "sleep 0.1; echo $1", "sh", "x"), label="test")
    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(ssh_transport.run, [command] * 20))
    assert [result.stdout for result in results] == [b"x\n"] * 20


def test_server_with_fewer_sessions_than_we_would_use_is_waited_for(start_sshd: StartSshd) -> None:
    transport = SshTransport(target_of(start_sshd("narrow", "MaxSessions 2")))
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(transport.run, [ECHO] * 6))
    transport.close()
    assert [result.stdout for result in results] == [b"in\n"] * 6


def test_crowded_server_is_asked_again(start_sshd: StartSshd) -> None:
    server = start_sshd("crowded", "MaxStartups 2:100:2")
    crowd = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
    assert all(member.recv(4) == b"SSH-" for member in crowd)
    clock = CrowdLeaves(crowd)
    transport = SshTransport(target_of(server), clock=clock)
    assert transport.run(ECHO).stdout == b"in\n"
    assert clock.slept
    transport.close()


def test_server_that_stays_crowded_is_given_up(start_sshd: StartSshd) -> None:
    server = start_sshd("crowded", "MaxStartups 1:100:1")
    with socket.create_connection(("127.0.0.1", server.port)) as member:
        assert member.recv(4) == b"SSH-"
        assert "before the login" in why_not(target_of(server), Timing(attempts=2)).message


class CrowdLeaves(SystemClock):
    """Time at whose first pause others make room."""

    def __init__(self, crowd: list[socket.socket]) -> None:
        self.crowd = crowd
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        for member in self.crowd:
            member.close()
        super().sleep(seconds)


RELAY = """
import os, socket, sys, threading
there = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def up():
    while data := os.read(0, 65536):
        there.sendall(data)
    there.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while data := there.recv(65536):
    os.write(1, data)
"""


def _new_key(path: Path, *options: str) -> Path:
    sshd.keygen(path, *options)
    return path


@contextmanager
def _agent(directory: Path, *keys: Path) -> Iterator[str]:
    """An ssh-agent of its own that holds the keys; gives its socket."""
    path = str(directory / "agent")
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()  # it says where it listens once it does
    try:
        adding = ["ssh-add", "-q", *map(str, keys)]
        subprocess.run(adding, env={**os.environ, "SSH_AUTH_SOCK": path}, check=True, stdin=subprocess.DEVNULL)
        yield path
    finally:
        process.terminate()
        process.wait()
