"""Fixtures of the transport tests."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from launcher.transport.target import SshTarget
from tests.support.ssh_logins import target_of
from tests.support.sshd import Sshd


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port that is bound but does not listen, so that no other process can take it."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@pytest.fixture
def target(sshd_server: Sshd) -> SshTarget:
    """The shared sshd."""
    return target_of(sshd_server)
