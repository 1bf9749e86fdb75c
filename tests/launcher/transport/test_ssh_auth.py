"""Keys of files and of agents, certificates and refusals, with real sshds and a real ssh-agent."""

from __future__ import annotations

import getpass
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from launcher.transport.target import SshTarget
from tests.support.ssh_logins import can_log_in, login_error, new_key, target_of
from tests.support.sshd import Sshd

pytestmark = pytest.mark.sshd
StartSshd = Callable[..., Sshd]


def test_agent_with_many_keys_does_not_prevent_the_identity_file(target: SshTarget, tmp_path: Path) -> None:
    keys = [new_key(tmp_path / f"agent{number}") for number in range(8)]
    with running_agent(tmp_path, *keys) as agent:
        assert can_log_in(replace(target, identity_agent=agent, identities_only=False))


def test_agent_key_is_used_without_an_identity_file(target: SshTarget, sshd_server: Sshd, tmp_path: Path) -> None:
    with running_agent(tmp_path, sshd_server.client_key) as agent:
        assert can_log_in(replace(target, identity_agent=agent, identity_files=(), identities_only=False))


def test_too_many_wrong_agent_keys_are_reported(target: SshTarget, tmp_path: Path) -> None:
    keys = [new_key(tmp_path / f"agent{number}") for number in range(8)]
    with running_agent(tmp_path, *keys) as agent:
        error = login_error(replace(target, identity_agent=agent, identity_files=(), identities_only=False))
    assert "MaxAuthTries" in error.message
    assert "IdentityFile" in error.message


def test_identities_only_excludes_agent_keys(target: SshTarget, sshd_server: Sshd, tmp_path: Path) -> None:
    with running_agent(tmp_path, sshd_server.client_key) as agent:
        assert "no key" in login_error(replace(target, identity_agent=agent, identity_files=())).message


def test_protected_key_without_an_agent_recommends_ssh_add(target: SshTarget, tmp_path: Path) -> None:
    locked = new_key(tmp_path / "locked", "-N", "secret")
    assert f"ssh-add {locked}" in login_error(replace(target, identity_files=(locked,))).message


def test_protected_key_in_the_agent_is_used(target: SshTarget, sshd_server: Sshd, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.write_bytes(sshd_server.client_key.read_bytes())
    locked.chmod(0o600)
    locked.with_suffix(".pub").write_bytes(sshd_server.client_key.with_suffix(".pub").read_bytes())
    with running_agent(tmp_path, sshd_server.client_key) as agent:
        subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-f", str(locked)], check=True, capture_output=True)
        assert can_log_in(replace(target, identity_files=(locked,), identity_agent=agent))


def test_wrong_keys_before_the_right_one_do_not_matter(target: SshTarget, sshd_server: Sshd, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("not a key\n")
    files = (tmp_path / "missing", broken, new_key(tmp_path / "wrong"), sshd_server.client_key)
    assert can_log_in(replace(target, identity_files=files))


def test_every_rejected_key_is_listed(target: SshTarget, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("not a key\n")
    error = login_error(replace(target, identity_files=(broken, new_key(tmp_path / "wrong"))))
    assert f"{broken}: unreadable" in error.message
    assert f"{tmp_path / 'wrong'}: rejected" in error.message
    assert error.hint.startswith("ssh -v")


def test_server_that_requires_a_password_is_reported(start_sshd: StartSshd) -> None:
    server = start_sshd("pw", "PubkeyAuthentication no", "PasswordAuthentication yes")
    error = login_error(target_of(server))
    assert "password" in error.message
    assert "ssh-copy-id" in error.hint


def test_key_with_a_certificate_is_accepted(start_sshd: StartSshd, tmp_path: Path) -> None:
    ca = new_key(tmp_path / "ca")
    server = start_sshd("ca", f"TrustedUserCAKeys {ca}.pub", "AuthorizedKeysFile none")
    mine = new_key(tmp_path / "mine")
    sign = ["ssh-keygen", "-q", "-s", str(ca), "-I", "test", "-n", getpass.getuser(), f"{mine}.pub"]
    subprocess.run(sign, check=True, capture_output=True)
    assert can_log_in(replace(target_of(server), identity_files=(mine,)))


def test_a_public_key_as_identity_file_selects_the_key_of_the_agent(
    target: SshTarget, sshd_server: Sshd, tmp_path: Path
) -> None:
    keys = [new_key(tmp_path / f"agent{number}") for number in range(8)]
    public = tmp_path / "mine.pub"
    public.write_bytes(sshd_server.client_key.with_suffix(".pub").read_bytes())
    with running_agent(tmp_path, *keys, sshd_server.client_key) as agent:
        assert can_log_in(replace(target, identity_agent=agent, identity_files=(public,)))


def test_an_agent_that_is_gone_is_left_out(target: SshTarget, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "gone", tmp_path / "file"):
        assert can_log_in(replace(target, identity_agent=str(path), identities_only=False))


def test_a_server_that_wants_a_second_method_is_reported_with_it(start_sshd: StartSshd) -> None:
    server = start_sshd(
        "two", "AuthenticationMethods publickey,password", "PasswordAuthentication yes", "PermitRootLogin yes"
    )
    error = login_error(target_of(server))
    assert f"{server.client_key}: accepted, but the server also requires password" in error.message


def test_a_key_file_that_this_user_may_not_use_is_named(target: SshTarget, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "public").write_text("ssh-ed25519 AAAA broken\n")
    error = login_error(replace(target, identity_files=(tmp_path / "folder", tmp_path / "public")))
    assert f"{tmp_path / 'folder'}: " in error.message
    assert f"{tmp_path / 'public'}: " in error.message


@contextmanager
def running_agent(directory: Path, *keys: Path) -> Iterator[str]:
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
