"""Each key of hosts.yaml is documented, and setting it changes the way to a host, a start there, or the gate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from launcher.gate.policy import Policy
from launcher.gate.side import Side
from launcher.transport import inventory
from launcher.transport.hosts_file import KEYS
from launcher.transport.ssh_config import CONFIG_VARIABLE
from tests.docs.key_tables import documented
from tests.support.gate_repo import FACTS

View = Callable[[Path], Any]


def way(folder: Path) -> Any:
    """The connection that the name leads to."""
    target = inventory.resolve("box", hosts_file=folder / "hosts.yaml").ssh
    assert target is not None
    return asdict(target)


def machine(folder: Path) -> Any:
    """What a launch takes from the inventory: the engine's Python, the folder of runs, variables."""
    host = inventory.resolve("box", hosts_file=folder / "hosts.yaml")
    return host.python, host.work_dir, dict(host.env)


def gate(folder: Path) -> Any:
    """What a gate knows of the host without asking it."""
    [found], broken = Side(folder, Policy(facts="none")).machines()
    assert broken == []
    return found.engine, found.raw


ROWS: dict[str, tuple[str, View]] = {
    "address": ("10.1.230.174", way),
    "user": ("somebody", way),
    "port": ("2222", way),
    "identity_files": ("[/keys/one]", way),
    "proxy_jump": ("bastion", way),
    "proxy_command": ("nc %h %p", way),
    "python": ("/opt/venv/bin/python", machine),
    "work_dir": ("/data/launcher", machine),
    "env": ("{A: '1'}", machine),
    "cuda_home": ("/usr/local/cuda-13.0", machine),
    "engine": ("0.5.12", gate),
    "facts": ("box-facts.json", gate),
}


def test_the_page_names_the_keys_that_are_read() -> None:
    assert documented("profiles.md", "## hosts.yaml") == set(KEYS)


def test_each_key_has_a_row() -> None:
    assert set(ROWS) == set(KEYS)


@pytest.mark.parametrize("key", sorted(ROWS))
def test_setting_it_changes_something(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ssh_config").write_text("")
    (tmp_path / "box-facts.json").write_text(json.dumps(FACTS))
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "ssh_config"))
    value, view = ROWS[key]
    observed = []
    for entry in ("{}", f"{{{key}: {value}}}"):
        (tmp_path / "hosts.yaml").write_text(f"hosts:\n  box: {entry}\n")
        observed.append(view(tmp_path))
    assert observed[0] != observed[1]
