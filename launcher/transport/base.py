"""What a flow may ask of a machine: run a program, stream its output, open a TCP stream.

There are three implementations: `ssh` (only the `ssh*` modules know paramiko), `local` (the only module that knows
subprocess) and `recorded`, which replays a recorded run. `test_contract` covers the two that execute programs;
`test_run_contract` checks that all three answer the requests of a run in the same form.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from typing import Protocol

from msgspec import Struct, field


class Command(Struct, frozen=True, kw_only=True):
    """One program to run on the machine. The transport does the quoting: argv holds plain words, nothing is expanded.

    Every user of the machine can read `argv` and `env` (ps); pass a secret through `stdin` or a file.
    """

    argv: tuple[str, ...]
    label: str  # the purpose in one word: shown in errors, and the key by which `recorded` finds the answer
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""  # empty: the home directory; exit code 126 when the directory cannot be entered
    timeout: float = 60.0  # seconds until TransportTimeout


class Result(Struct, frozen=True, kw_only=True):
    """How a command ended. `exit` is the negated signal number (-9), as in `subprocess`; 127 is a missing program."""

    exit: int
    stdout: bytes
    stderr: bytes
    seconds: float


class Stream(Protocol):
    """The output of a long-running command as it arrives."""

    def __iter__(self) -> Iterator[bytes]:
        """Yield chunks of standard output, b"" at least once a second while there is none, until the command ends.

        Raises HostUnreachable when the connection is lost before the command ends.
        """

    def result(self) -> Result:
        """Return how the command ended, after the last chunk; `stdout` of the result is empty."""

    def close(self) -> None:
        """End the command, its process group and the iteration. May be called twice."""


class Transport(Protocol):
    """A connection to one machine."""

    @property
    def name(self) -> str:
        """The host name that the user gave."""

    def run(self, command: Command) -> Result:
        """Run a command until every process that holds its output open has closed it.

        Raises HostUnreachable; TransportTimeout, after ending the command's process group; HostCommandFailed when the
        login shell does not run commands.
        """

    def stream(self, command: Command) -> Stream:
        """Start a command and return its output as a Stream; `timeout` limits only the start."""

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """Open a TCP stream to host:port as seen from the machine.

        Raises ConnectionRefusedError, TimeoutError, HostUnreachable.
        """

    def close(self) -> None:
        """Close the connection. May be called twice."""
