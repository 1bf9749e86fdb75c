"""What a flow may ask of a machine: run a program, move bytes, open a TCP stream. One implementation per way there.

`ssh` is the only module that knows paramiko, `local` the only one that knows subprocess, `recorded` plays a recorded
run. What executes programs is held to `test_contract`; what a run asks is answered in one form by all three
(`test_run_contract`).
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from typing import Protocol

from msgspec import Struct, field


class Command(Struct, frozen=True, kw_only=True):
    """One program to run on the machine. Quoting is the transport's work: argv holds plain words, nothing is expanded.

    Words and `env` can be read by every user of the machine (ps); a secret goes through `stdin` or a file.
    """

    argv: tuple[str, ...]
    label: str  # what it is for, in one word: shown in errors, the key under which replay answers
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""  # the home directory when empty; exit code 126 when it cannot be entered
    timeout: float = 60.0  # seconds; TransportTimeout afterwards


class Result(Struct, frozen=True, kw_only=True):
    """How a command ended. `exit` is negative for a signal (-9), as in `subprocess`, and 127 for a missing program."""

    exit: int
    stdout: bytes
    stderr: bytes
    seconds: float


class Stream(Protocol):
    """Output of a long-running command, as it comes."""

    def __iter__(self) -> Iterator[bytes]:
        """Chunks of standard output, b"" at least once a second when there is none. Ends when the command ends.

        Raises HostUnreachable when the connection is lost before.
        """

    def result(self) -> Result:
        """How the command ended, once the chunks are used up; its stdout is empty."""

    def close(self) -> None:
        """End the command, with what it left in its process group, and the iteration; twice is fine."""


class Transport(Protocol):
    """One machine, one connection."""

    @property
    def name(self) -> str:
        """The host as the user named it."""

    def run(self, command: Command) -> Result:
        """Run to the end, which is when every holder of its output has closed it.

        Raises HostUnreachable; TransportTimeout, and the command's process group has been ended; HostCommandFailed when
        the login shell does not run commands.
        """

    def stream(self, command: Command) -> Stream:
        """Start a command and read its output as it comes; `timeout` bounds the start only."""

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """A TCP stream to host:port as seen from the machine.

        Raises ConnectionRefusedError, TimeoutError, HostUnreachable.
        """

    def close(self) -> None:
        """End the connection; twice is fine."""
