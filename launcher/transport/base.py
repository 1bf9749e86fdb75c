"""What a flow may ask of a machine: run a program, move bytes, open a TCP stream. One implementation per way there.

`ssh` is the only module that knows paramiko, `local` the only one that knows subprocess, `replay` plays a recorded
run. The same tests run over all of them, so that none can drift.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One program to run on the machine. Quoting is the transport's work: argv holds plain words."""

    argv: tuple[str, ...]
    label: str  # what it is for, in one word: shown in errors, the key under which replay answers
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    timeout: float = 60.0  # seconds; TransportTimeout afterwards


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a command ended. `exit` is negative for a signal (-9), as in `subprocess`."""

    exit: int
    stdout: bytes
    stderr: bytes
    seconds: float


class Stream(Protocol):
    """Output of a long-running command, as it comes."""

    def __iter__(self) -> Iterator[bytes]:
        """Chunks of standard output, b"" at least once a second when there is none. Ends when the command ends."""

    def result(self) -> Result:
        """How the command ended, once the chunks are used up; its stdout is empty."""

    def close(self) -> None:
        """Stop reading; the command sees a closed pipe."""


class Transport(Protocol):
    """One machine, one connection."""

    @property
    def name(self) -> str:
        """The host as the user named it."""

    def run(self, command: Command) -> Result:
        """Run to the end. Raises HostUnreachable, TransportTimeout."""

    def stream(self, command: Command) -> Stream:
        """Start a command and read its output as it comes; `timeout` bounds the start only."""

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """A TCP stream to host:port as seen from the machine. Raises ConnectionRefusedError, HostUnreachable."""

    def close(self) -> None:
        """End the connection; twice is fine."""
