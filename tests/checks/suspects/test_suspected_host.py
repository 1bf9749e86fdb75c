"""An error of the operating system names the resource of the host that is behind it."""

from __future__ import annotations

import pytest

from checks.suspects.clues import Clues
from checks.suspects.suspected_host import suspected_host


@pytest.mark.parametrize(
    ("message", "resource", "look"),
    [
        ("RuntimeError: -1 vs -1. Too many open files", "open-file limit", "ulimit -n"),
        ("RuntimeError: can't start new thread", "process, thread and address-space limits", "ulimit -u"),
        ("OSError: [Errno 28] No space left on device", "disk space", "df -h"),
        ("OSError: [Errno 30] Read-only file system: '/x'", "a mount that is read-only", "findmnt"),
        ("zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:1')", "a port that is taken", "ss -ltnp"),
    ],
)
def test_the_resource_is_suspected_with_the_command_to_inspect_it(message: str, resource: str, look: str) -> None:
    suspect = suspected_host(Clues(message=message))
    assert suspect is not None
    assert suspect.value == resource
    assert suspect.experiments[0].inspect.startswith(look)
    assert "the operating system reports" in suspect.reasons[0]


@pytest.mark.parametrize("message", ["", "ValueError: frob", "the files are open"])
def test_other_messages_name_no_resource(message: str) -> None:
    assert suspected_host(Clues(message=message)) is None
