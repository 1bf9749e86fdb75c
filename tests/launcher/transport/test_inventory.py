"""The inventory, and how it resolves a name to a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.errors import ProfileError, UsageError
from launcher.transport import inventory
from launcher.transport.base import Command
from launcher.transport.connect import connect
from launcher.transport.ssh_config import CONFIG_VARIABLE

ENTRY = """\
hosts:
  gpu-box:
    address: 10.9.8.7
    user: eva
    port: 2222
    identity_files: [~/.ssh/gpu]
    python: /opt/venv/bin/python
    work_dir: /scratch/runs
    env: {NCCL_P2P_DISABLE: 1, HF_HOME: /models}
    cuda_home: /usr/local/cuda-13
    engine: 0.5.12, in /opt/venv
    facts: facts/gpu-box.json
  bare:
"""


@pytest.fixture
def hosts_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ssh_config").write_text("")
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "ssh_config"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "some.yaml"
    file.write_text(ENTRY)
    return file


def test_entry_sets_the_connection_and_the_machine(hosts_file: Path) -> None:
    host = inventory.resolve("gpu-box", hosts_file=hosts_file)
    assert host.ssh is not None
    assert (host.ssh.address, host.ssh.user, host.ssh.port) == ("10.9.8.7", "eva", 2222)
    assert host.ssh.identity_files[0] == Path("~/.ssh/gpu").expanduser()
    assert (host.python, host.work_dir) == ("/opt/venv/bin/python", "/scratch/runs")
    assert host.env == {"CUDA_HOME": "/usr/local/cuda-13", "NCCL_P2P_DISABLE": "1", "HF_HOME": "/models"}


def test_command_line_wins_over_the_entry(hosts_file: Path) -> None:
    host = inventory.resolve("root@gpu-box:22", hosts_file=hosts_file)
    assert host.ssh is not None
    assert (host.ssh.user, host.ssh.port) == ("root", 22)
    assert host.python == "/opt/venv/bin/python"


@pytest.mark.parametrize("name", ["bare", "stranger"])
def test_host_without_an_entry_has_defaults(hosts_file: Path, name: str) -> None:
    host = inventory.resolve(name, hosts_file=hosts_file)
    assert host.ssh is not None
    assert (host.ssh.address, host.python, host.work_dir) == (name, "", "~/.sglang-launcher")


def test_local_is_this_machine(hosts_file: Path) -> None:
    host = inventory.resolve("local")
    assert host.ssh is None
    result = connect(host).run(Command(argv=("echo", "here"), label="test"))
    assert result.stdout == b"here\n"


def test_local_may_have_an_entry(hosts_file: Path) -> None:
    hosts_file.write_text("hosts:\n  local:\n    python: /usr/bin/python3\n")
    assert inventory.resolve("local", hosts_file=hosts_file).python == "/usr/bin/python3"


def test_inventory_is_read_from_the_working_folder_then_from_the_users_configuration(
    hosts_file: Path, tmp_path: Path
) -> None:
    assert inventory.inventory_path() is None
    assert inventory.names() == ()
    users = tmp_path / "xdg" / "sglang-launcher" / "hosts.yaml"
    users.parent.mkdir(parents=True)
    users.write_text(ENTRY)
    assert inventory.names() == ("gpu-box", "bare")
    (tmp_path / "hosts.yaml").write_text("hosts:\n  here: {python: p}\n")
    assert inventory.names() == ("here",)
    assert inventory.names(hosts_file=hosts_file) == ("gpu-box", "bare")


@pytest.mark.parametrize(
    ("text", "position", "phrase"),
    [
        ("hosts:\n  gpu-box:\n    pyhton: x\n", ":3:5", "pyhton"),
        ("host:\n  gpu-box: {}\n", ":1:1", "host"),
        ("hosts:\n  gpu-box:\n    port: many\n", ":3:11", "port"),
        ("hosts:\n  gpu-box:\n    port: 70000\n", ":3:11", "port"),
        ("hosts:\n  gpu-box:\n    port: true\n", ":3:11", "port"),
        ("hosts:\n  gpu-box:\n    python: [a]\n", ":3:13", "list"),
        ("hosts:\n  gpu-box:\n    python:\n", ":3:12", "python"),
        ("hosts:\n  gpu-box:\n    identity_files: ~/.ssh/id\n", ":3:21", "list"),
        ("hosts:\n  gpu-box:\n    env: {A B: 1}\n", ":3:11", "A B"),
        ("hosts:\n  gpu-box:\n    env: {A: [1]}\n", ":3:14", "list"),
        ("hosts:\n  gpu-box:\n    address: -oProxyCommand=id\n", ":3:14", "option"),
        ("hosts:\n  gpu-box:\n    address: eva@box\n", ":3:14", "user"),
        ("hosts:\n  gpu-box:\n    user: '-l'\n", ":3:11", "option"),
        ('hosts:\n  gpu-box:\n    proxy_command: "a\\nb"\n', ":3:20", "one line"),
        ("hosts:\n  gpu-box:\n    proxy_jump: -J\n", ":3:17", "option"),
        ("hosts:\n  gpu-box: 10.0.0.1\n", ":2:12", "mapping"),
        ("hosts: [gpu-box]\n", ":1:8", "mapping"),
    ],
)
def test_invalid_inventory_is_reported_with_its_position(
    hosts_file: Path, text: str, position: str, phrase: str
) -> None:
    hosts_file.write_text(text)
    with pytest.raises(ProfileError) as caught:
        inventory.resolve("gpu-box", hosts_file=hosts_file)
    assert caught.value.where == f"{hosts_file}{position}"
    assert phrase in caught.value.message


def test_the_hint_corrects_a_misspelled_key(hosts_file: Path) -> None:
    hosts_file.write_text("hosts:\n  gpu-box:\n    pyhton: x\n")
    with pytest.raises(ProfileError) as caught:
        inventory.resolve("gpu-box", hosts_file=hosts_file)
    assert "`python`" in caught.value.hint


def test_invalid_entry_of_another_host_is_ignored(hosts_file: Path) -> None:
    hosts_file.write_text("hosts:\n  broken: {pyhton: x}\n  gpu-box: {python: p}\n")
    assert inventory.resolve("gpu-box", hosts_file=hosts_file).python == "p"


def test_missing_inventory_that_was_named_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="No such file"):
        inventory.resolve("gpu-box", hosts_file=tmp_path / "none.yaml")


@pytest.mark.parametrize("name", ["-oProxyCommand=id", "a b", "", "box\n"])
def test_names_that_ssh_could_misread_are_rejected(hosts_file: Path, name: str) -> None:
    with pytest.raises(UsageError):
        inventory.resolve(name)


def test_name_connects_to_a_real_sshd(gpu_box: str) -> None:
    transport = connect(inventory.resolve(gpu_box))
    assert transport.name == gpu_box
    assert transport.run(Command(argv=("echo", "there"), label="test")).stdout == b"there\n"
    transport.close()
