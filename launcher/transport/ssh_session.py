"""One command on an SSH connection: its input, its outputs and how it ended.

When a command may start, and how a running one is killed, is decided in `ssh`.
"""

from __future__ import annotations

import contextlib
import select
import signal
import threading
from collections.abc import Callable, Iterator

import paramiko

from launcher.clock import Clock
from launcher.errors import HostCommandFailed, LauncherError
from launcher.transport.base import Result
from launcher.transport.quote import Unwrap
from launcher.transport.ssh_dial import Connection, unreachable
from launcher.transport.target import SshTarget

HEARTBEAT = 0.5  # seconds; a Stream promises at least one chunk a second
STDERR_KEPT = 1 << 20
_CHUNK = 1 << 18
_UNKNOWN_SIGNAL = 64  # OpenSSH reports only the common signals by name, all others as SIG@openssh.com


class Session:
    """A command that was started with `quote.login_line`."""

    def __init__(self, channel: paramiko.Channel, connection: Connection, target: SshTarget, clock: Clock) -> None:
        self._clock = clock
        self.connection = connection
        self.running = True  # until its exit status is known
        self._channel = channel
        self._target = target
        self._stdout, self._stderr = Unwrap(), Unwrap()
        self._released = False
        # a descriptor that becomes readable when either output has bytes or the channel has ended
        self._poll = select.poll()
        self._poll.register(channel.fileno(), select.POLLIN)

    def feed(self, data: bytes) -> None:
        """Write the whole input and close it, without waiting for the command to read."""

        def write() -> None:
            # a command may exit before it has read all of its input
            with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                self._channel.sendall(data)
                self._channel.shutdown_write()

        if data:
            threading.Thread(target=write, daemon=True).start()
        else:
            write()

    def read(self, timeout: float) -> tuple[bytes, bytes] | None:
        """Return what arrived on stdout and stderr within `timeout` seconds; None at the end.

        Raises HostUnreachable when the connection is lost, HostCommandFailed when the login shell did not run the
        command.
        """
        chunk = self._take()
        if chunk is not None:
            return chunk
        if self._ended():
            # the exit status arrives separately from the end of the output
            if not self._channel.status_event.wait(timeout):
                return b"", b""
            self.running = False
            self.exit_code()  # raises now if the command never ran: the caller may not ask for the result
            return None
        self._check_alive()
        self._poll.poll(timeout * 1000)
        return self._take() or (b"", b"")

    def exit_code(self) -> int:
        """Return the exit status, or the negated signal number. Valid only after the end of the command.

        Raises HostUnreachable, HostCommandFailed.
        """
        if self._channel.exit_status < 0 and not self._signal():
            self.connection.transport.join(0.5)  # a lost connection closes its channels before it reports the loss
            self._check_alive()
        if not self._stdout.pid:
            raise self._shell_error()
        if self._channel.exit_status >= 0:
            return int(self._channel.exit_status)
        name = self._signal()
        if not name:
            raise HostCommandFailed(
                "the command ended, but sshd did not report its exit status", where=self._target.name
            )
        number: int = getattr(signal, f"SIG{name}", _UNKNOWN_SIGNAL)
        return -number

    def group_to_end(self, patience: float) -> int:
        """Return the process group of a command that is still running, else 0.

        Waits up to `patience` seconds if the login shell has not started the command yet; output that arrives during
        the wait is lost.
        """
        if self._released or not self.running or self._is_complete():
            return 0
        deadline = self._clock.monotonic() + patience
        with contextlib.suppress(LauncherError):
            while not self._stdout.pid and self._clock.monotonic() < deadline and self.read(0.1) is not None:
                pass
        return self._stdout.pid if self.running else 0

    def release(self) -> bool:
        """Close the channel; return False if it was closed before."""
        if self._released:
            return False
        self._released = True
        self._channel.close()
        return True

    def _take(self) -> tuple[bytes, bytes] | None:
        out = self._channel.recv(_CHUNK) if self._channel.recv_ready() else b""
        err = self._channel.recv_stderr(_CHUNK) if self._channel.recv_stderr_ready() else b""
        if not out and not err:
            return None
        return self._stdout.feed(out), self._stderr.feed(err)

    def _ended(self) -> bool:
        # paramiko sets the flags after the last bytes: when one is set, check for bytes once more
        return bool(self._channel.eof_received or self._channel.closed) and not (
            self._channel.recv_ready() or self._channel.recv_stderr_ready()
        )

    def _is_complete(self) -> bool:
        return bool(self._channel.eof_received) and self._channel.status_event.is_set()

    def _signal(self) -> str:
        return str(getattr(self._channel, "exit_signal", ""))

    def _check_alive(self) -> None:
        transport = self.connection.transport
        if transport.is_active() and not transport.is_silent():
            return
        error = TimeoutError() if transport.is_silent() else transport.get_exception()
        self.connection.close()
        raise unreachable(self._target, error)

    def _shell_error(self) -> HostCommandFailed:
        printed = (self._stdout.prelude + self._stderr.prelude).decode(errors="replace").strip()[-500:]
        user = f"{self._target.user}@{self._target.name}"
        message = f"the login shell of {user} did not run the command (exit {self._channel.exit_status})"
        return HostCommandFailed(
            f"{message}; it printed: {printed}" if printed else f"{message} and printed nothing",
            where=self._target.name,
            hint=f"try `{self._target.command()}`; the login shell must support `-c COMMAND`",
        )


class SshStream:
    """The output of a remote command as it arrives."""

    def __init__(self, session: Session, finish: Callable[[], None], clock: Clock) -> None:
        self._session = session
        self._finish = finish
        self._clock = clock
        self._began = clock.monotonic()
        self._stderr = b""
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        while not self._closed and (chunk := self._next()) is not None:
            yield chunk

    def result(self) -> Result:
        """Wait for the end of the command and return how it ended. Raises HostUnreachable, HostCommandFailed."""
        for _ in self:
            pass
        exit_code = self._session.exit_code()
        seconds = self._clock.monotonic() - self._began
        return Result(exit=exit_code, stdout=b"", stderr=self._stderr, seconds=seconds)

    def close(self) -> None:
        """Stop reading and end the command."""
        self._closed = True
        self._finish()

    def _next(self) -> bytes | None:
        try:
            chunk = self._session.read(HEARTBEAT)
        except LauncherError:
            self._finish()
            raise
        if chunk is None:
            self._finish()  # a reader that reaches the end need not call close
            return None
        stdout, stderr = chunk
        if stderr:
            self._stderr = (self._stderr + stderr)[-STDERR_KEPT:]
        return stdout
