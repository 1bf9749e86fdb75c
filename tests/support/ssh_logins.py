"""Logins to the real sshds of tests: targets, and whether a login works or why it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.errors import HostUnreachable
from launcher.transport.base import Command
from launcher.transport.ssh import SshTransport
from launcher.transport.ssh_config import SshRequest, resolve_target
from launcher.transport.ssh_dial import Timing
from launcher.transport.target import SshTarget, parse_destination
from tests.support import sshd
from tests.support.sshd import Sshd

ECHO = Command(argv=("echo", "in"), label="test")


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


def new_key(path: Path, *options: str) -> Path:
    """Create a key pair and return its path. `options` are those of ssh-keygen."""
    sshd.keygen(path, *options)
    return path
