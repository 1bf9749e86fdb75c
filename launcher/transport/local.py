"""The Transport for this machine, and the only module that starts processes on it.

Commands run as they do over SSH: the same sh text, started in the home directory, each in its own session, so that
Ctrl-C in the terminal reaches only the launcher.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from msgspec import Struct

from launcher.clock import Clock, SystemClock
from launcher.errors import HostUnreachable, TransportTimeout
from launcher.transport import quote
from launcher.transport.base import Command, Result

HEARTBEAT = 0.5  # seconds; a Stream promises at least one chunk a second
STDERR_KEPT = 1 << 20
_GRACE = 0.5  # seconds between SIGTERM and SIGKILL


class LocalTransport:
    """Runs commands with /bin/sh and opens sockets directly."""

    def __init__(self, name: str = "local", *, clock: Clock | None = None) -> None:
        self._name = name
        self._clock = clock or SystemClock()

    @property
    def name(self) -> str:
        return self._name

    def run(self, command: Command) -> Result:
        """Run a command until every process that holds its output open has closed it. Raises TransportTimeout."""
        began = self._clock.monotonic()
        process = _start(command)
        try:
            stdout, stderr = process.communicate(command.stdin, timeout=command.timeout)
        except subprocess.TimeoutExpired as error:
            _end_group(process)
            raise TransportTimeout(
                f"`{command.label}` did not finish within {command.timeout:g} s", where=self._name
            ) from error
        except BaseException:  # Ctrl-C does not reach the command, which runs in its own session
            _end_group(process)
            raise
        finally:
            _close_pipes(process)
        return Result(exit=process.returncode, stdout=stdout, stderr=stderr, seconds=self._clock.monotonic() - began)

    def stream(self, command: Command) -> LocalStream:
        """Start a command and return its output as a Stream."""
        return LocalStream(command, self._clock)

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """Open a TCP stream. Raises ConnectionRefusedError, TimeoutError, HostUnreachable."""
        try:
            stream = socket.create_connection((host, port), timeout)
        except (ConnectionRefusedError, TimeoutError):
            raise
        except (OSError, UnicodeError) as error:  # UnicodeError: a name that IDNA cannot encode
            raise HostUnreachable(f"cannot connect to {host}:{port}: {error}", where=self._name) from error
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return stream

    def close(self) -> None:
        """Do nothing: this transport holds no connection."""


class LocalStream:
    """The output of a local command as it arrives."""

    def __init__(self, command: Command, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._stderr = b""
        self._ended = False
        self._process = _start(command)
        feed_in_background(self._process.stdin, command.stdin)

    def __iter__(self) -> Iterator[bytes]:
        if self._ended:
            return
        with selectors.DefaultSelector() as ready:
            for pipe in (self._process.stdout, self._process.stderr):
                assert pipe is not None  # both are pipes, see _start
                ready.register(pipe, selectors.EVENT_READ)
            while ready.get_map():
                yield from self._read(ready)
        while self._process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(HEARTBEAT)
                break
            yield b""
        self._ended = True

    def result(self) -> Result:
        """Wait for the end of the command and return how it ended."""
        for _ in self:
            pass
        _close_pipes(self._process)
        exit_code = self._process.wait()
        seconds = self._clock.monotonic() - self._began
        return Result(exit=exit_code, stdout=b"", stderr=self._stderr, seconds=seconds)

    def close(self) -> None:
        """Stop reading and end the command."""
        if not self._ended:
            self._ended = True
            _end_group(self._process)
        _close_pipes(self._process)

    def _read(self, ready: selectors.BaseSelector) -> Iterator[bytes]:
        events = ready.select(HEARTBEAT)
        any_output = False
        for key, _ in events:
            data = os.read(key.fd, 1 << 16)
            if not data:
                ready.unregister(key.fileobj)
            elif key.fileobj is self._process.stderr:
                self._stderr = (self._stderr + data)[-STDERR_KEPT:]
            else:
                any_output = True
                yield data
        if not any_output:
            yield b""


class Proxy(Struct, frozen=True):
    """A running ProxyCommand: its stdin and stdout are the other end of `stream`."""

    stream: socket.socket
    process: subprocess.Popen[bytes]
    stderr: IO[bytes]

    def complaint(self) -> str:
        """Return the last 500 characters that it has written to standard error so far."""
        self.stderr.seek(0)
        return self.stderr.read().decode(errors="replace").strip()[-500:]

    def close(self) -> None:
        """End the ProxyCommand. May be called twice."""
        self.stream.close()
        if self.process.returncode is None:
            _end_group(self.process)
        self.stderr.close()


def start_proxy(command_line: str) -> Proxy:
    """Start an ssh ProxyCommand as ssh does, with the shell, and return it.

    It is connected by a socket pair because paramiko's own ProxyCommand does not support shell syntax and spins forever
    once the program has ended.
    """
    ours, theirs = socket.socketpair()
    stderr = tempfile.TemporaryFile()  # noqa: SIM115  Proxy closes it
    with theirs:
        process = subprocess.Popen(
            [b"/bin/sh", b"-c", f"exec {command_line}".encode()],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=stderr,
            start_new_session=True,
        )
    return Proxy(ours, process, stderr)


def feed_in_background(pipe: IO[bytes] | None, data: bytes) -> None:
    """Write data to a pipe and close the pipe, without waiting for the reader."""
    assert pipe is not None

    def write() -> None:
        # a command may exit before it has read all of its input
        with contextlib.suppress(OSError), pipe:
            pipe.write(data)

    if data:
        threading.Thread(target=write, daemon=True).start()
    else:
        pipe.close()


def _start(command: Command) -> subprocess.Popen[bytes]:
    home = Path.home()
    text = quote.script(command).encode("utf-8", "surrogateescape")
    return subprocess.Popen(
        [b"/bin/sh", b"-c", text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home if home.is_dir() else "/",  # as sshd does
        start_new_session=True,
    )


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the command and its process group: SIGTERM, half a second to exit, SIGKILL."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):  # stdin may contain bytes that were never read
                pipe.close()
