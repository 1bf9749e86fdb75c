"""Host names, resolved by the real `ssh -G`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from launcher.errors import ProfileError, UsageError
from launcher.transport.ssh_config import CONFIG_VARIABLE, SshRequest, resolve_target
from launcher.transport.target import SshTarget, parse_destination

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="needs an OpenSSH client")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.delenv(CONFIG_VARIABLE, raising=False)
    return tmp_path / "config"


def resolved(config: Path, name: str, text: str, **settings: str) -> SshTarget:
    config.write_text(text)
    request = SshRequest(destination=parse_destination(name), **settings)  # type: ignore[arg-type]
    return resolve_target(request, config=config)


def test_host_block_is_applied(config: Path) -> None:
    text = "Host box\n HostName 10.9.8.7\n Port 2200\n User eva\n IdentityFile /k/one\n IdentitiesOnly yes\n"
    target = resolved(config, "box", text)
    assert (target.name, target.address, target.port, target.user) == ("box", "10.9.8.7", 2200, "eva")
    assert (target.identity_files, target.identities_only) == ((Path("/k/one"),), True)


def test_unknown_name_is_taken_as_an_address(config: Path) -> None:
    target = resolved(config, "root@10.9.8.7:2222", "")
    assert (target.address, target.user, target.port, target.via) == ("10.9.8.7", "root", 2222, None)


def test_included_files_and_match_blocks_are_applied(config: Path, tmp_path: Path) -> None:
    included = tmp_path / "included"
    included.write_text("Host box\n HostName 10.1.1.1\n")
    text = f"Include {included}\nMatch host 10.1.1.1\n User eva\nMatch exec false\n Port 99\n"
    target = resolved(config, "box", text)
    assert (target.address, target.user, target.port) == ("10.1.1.1", "eva", 22)


def test_command_line_wins_over_the_configuration(config: Path) -> None:
    target = resolved(config, "adam@box:23", "Host box\n User eva\n Port 99\n")
    assert (target.user, target.port) == ("adam", 23)


def test_jump_chain_is_followed_from_the_far_end(config: Path) -> None:
    text = "Host box\n ProxyJump one,eva@two:2222\nHost one\n HostName 10.0.0.1\n Port 7\n"
    target = resolved(config, "box", text)
    two = target.via
    assert two is not None
    assert (two.address, two.user, two.port) == ("two", "eva", 2222)
    one = two.via
    assert one is not None
    assert (one.address, one.port, one.via) == ("10.0.0.1", 7, None)


def test_jump_of_a_jump_host_is_followed(config: Path) -> None:
    target = resolved(config, "box", "Host box\n ProxyJump one\nHost one\n ProxyJump two\n")
    assert target.via is not None
    assert target.via.via is not None
    assert target.via.via.name == "two"


def test_jump_loop_is_an_error_with_a_command(config: Path) -> None:
    with pytest.raises((UsageError, ProfileError)) as caught:
        resolved(config, "box", "Host box\n ProxyJump one\nHost one\n ProxyJump box\n")
    assert caught.value.hint.startswith("ssh -")


def test_proxy_jump_none_means_none(config: Path) -> None:
    assert resolved(config, "box", "Host box\n ProxyJump none\nHost *\n ProxyJump one\n").via is None


def test_proxy_command_tokens_are_expanded(config: Path) -> None:
    text = "Host box\n HostName 10.0.0.1\n Port 7\n User eva\n ProxyCommand nc -x 'a b' %h %p # %r %n %%\n"
    assert resolved(config, "box", text).proxy_command == "nc -x 'a b' 10.0.0.1 7 # eva box %"


def test_proxy_command_none_means_none(config: Path) -> None:
    assert resolved(config, "box", "Host box\n ProxyCommand none\n").proxy_command == ""


def test_identity_tokens_are_expanded(config: Path) -> None:
    target = resolved(config, "box", "Host box\n User eva\n IdentityFile ~/k/%r@%h\n IdentityFile %d/id\n")
    assert target.identity_files == (Path.home() / "k/eva@box", Path.home() / "id")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("IdentityAgent none", ""),
        ("IdentityAgent /run/a", "/run/a"),
        ("IdentityAgent $MY_AGENT", "/run/mine"),
        ("", "/run/std"),
    ],
)
def test_agent_is_the_configured_one(config: Path, monkeypatch: pytest.MonkeyPatch, line: str, expected: str) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/std")
    monkeypatch.setenv("MY_AGENT", "/run/mine")
    assert resolved(config, "box", f"Host box\n {line}\n").identity_agent == expected


def test_known_hosts_files_of_user_and_machine_are_read(config: Path) -> None:
    text = "Host box\n UserKnownHostsFile /a /b\n GlobalKnownHostsFile /c\n HostKeyAlias real\n"
    target = resolved(config, "box", text)
    assert target.known_hosts == (Path("/a"), Path("/b"), Path("/c"))
    assert target.host_key_name == "real"


@pytest.mark.parametrize(
    ("value", "accepted"), [("no", True), ("off", True), ("ask", False), ("yes", False), ("accept-new", False)]
)
def test_unknown_keys_are_accepted_only_where_the_user_configured_it(config: Path, value: str, accepted: bool) -> None:
    assert resolved(config, "box", f"Host box\n StrictHostKeyChecking {value}\n").accept_unknown is accepted


def test_invalid_configuration_is_reported_with_its_line(config: Path) -> None:
    with pytest.raises(ProfileError, match="line 2"):
        resolved(config, "box", "Host box\n NoSuchKeyword x\n")


def test_pasted_command_reaches_the_same_host(config: Path) -> None:
    target = resolved(config, "eva@box:99", "", proxy_jump="one")
    assert target.command("-v") == f"ssh -v -F {config} -p 99 -l eva -J one box true"


def test_a_variable_selects_another_configuration(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("Host box\n HostName 10.5.5.5\n")
    monkeypatch.setenv(CONFIG_VARIABLE, str(config))
    assert resolve_target(SshRequest(destination=parse_destination("box"))).address == "10.5.5.5"


def test_without_an_ssh_program_the_launcher_reads_the_file(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(config.parent))
    text = "Host box\n HostName 10.9.8.7\n Port 2200\n User eva\n IdentityFile /k/one\n ProxyJump one\n"
    target = resolved(config, "box:7", text)
    assert (target.address, target.port, target.user) == ("10.9.8.7", 7, "eva")
    assert target.identity_files == (Path("/k/one"),)
    assert target.via is not None
    assert target.via.address == "one"
