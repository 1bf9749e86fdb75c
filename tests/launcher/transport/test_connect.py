"""Which transport answers for a host; how each one works is tested with its own module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from launcher.errors import HostUnreachable, UsageError
from launcher.transport.connect import connect
from launcher.transport.inventory import Host, resolve
from launcher.transport.local import LocalTransport
from launcher.transport.recorded import ReplayTransport
from launcher.transport.target import SshTarget


def test_a_host_without_ssh_is_this_machine_under_its_name() -> None:
    transport = connect(Host(name="local"))
    assert isinstance(transport, LocalTransport)
    assert transport.name == "local"


def test_a_recorded_run_answers_in_place_of_its_host(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"state": "crashed", "host": "box"}')
    (tmp_path / "plan.json").write_text("{}")
    assert isinstance(connect(Host(name="replay:x", replay=tmp_path)), ReplayTransport)
    with pytest.raises(UsageError, match="is not a run folder"):
        connect(Host(name="replay:x", replay=tmp_path / "missing"))


def test_this_machine_needs_no_ssh_library() -> None:
    code = (
        "import sys; from launcher.transport.connect import connect; from launcher.transport.inventory import Host;"
        "connect(Host(name='local')); print('paramiko' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout == b"False\n"


def test_a_host_that_cannot_be_reached_is_reported_at_once(unused_port: int) -> None:
    target = SshTarget(name="box", address="127.0.0.1", user="eva", port=unused_port)
    with pytest.raises(HostUnreachable, match="refuses connections") as caught:
        connect(Host(name="box", ssh=target))
    assert caught.value.where == "box"


@pytest.mark.sshd
def test_a_host_behind_ssh_is_logged_in_to(gpu_box: str) -> None:
    host = resolve(gpu_box)
    transport = connect(host)
    try:
        assert transport.name == gpu_box
    finally:
        transport.close()
    assert host.ssh is not None
    with pytest.raises(HostUnreachable, match="no key on this machine"):
        connect(replace(host, ssh=replace(host.ssh, identity_files=(), identity_agent="")))
