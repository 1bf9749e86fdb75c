"""One command on an SSH connection: bytes in, bytes out, how it ended. `ssh` decides when there may be one."""

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

HEARTBEAT = 0.5  # seconds; the contract says one a second at least
STDERR_KEPT = 1 << 20
_CHUNK = 1 << 18
_UNKNOWN_SIGNAL = 64  # OpenSSH names the common signals and calls the rest SIG@openssh.com


class Session:
    """A command that was started with `quote.login_line`."""

    def __init__(self, channel: paramiko.Channel, connection: Connection, target: SshTarget, clock: Clock) -> None:
        self._clock = clock
        self.connection = connection
        self.running = True  # until its exit status or its end is known
        self._channel = channel
        self._target = target
        self._stdout, self._stderr = Unwrap(), Unwrap()
        self._released = False
        # a descriptor that is readable when either output has bytes or the channel has ended
        self._poll = select.poll()
        self._poll.register(channel.fileno(), select.POLLIN)

    def feed(self, data: bytes) -> None:
        """Write its whole input and close it, without waiting for the command to read."""

        def write() -> None:
            # a command may end without having read all of its input
            with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                self._channel.sendall(data)
                self._channel.shutdown_write()

        if data:
            threading.Thread(target=write, daemon=True).start()
        else:
            write()

    def read(self, timeout: float) -> tuple[bytes, bytes] | None:
        """What came on stdout and stderr within `timeout` seconds; None at the end.

        Raises HostUnreachable when the connection is lost, HostCommandFailed when the login shell did not obey.
        """
        chunk = self._take()
        if chunk is not None:
            return chunk
        if self._ended():
            # the exit status comes apart from the end of the output
            if not self._channel.status_event.wait(timeout):
                return b"", b""
            self.running = False
            self.exit_code()  # an end that was none is an error here, not in a result nobody may ask for
            return None
        self._check_alive()
        self._poll.poll(timeout * 1000)
        return self._take() or (b"", b"")

    def exit_code(self) -> int:
        """Exit status, or the negative number of the signal. To be asked after the end."""
        if self._channel.exit_status < 0 and not self._signal():
            self.connection.transport.join(0.5)  # a lost connection closes its channels first, then says so
            self._check_alive()
        if not self._stdout.pid:
            raise self._disobedient()
        if self._channel.exit_status >= 0:
            return int(self._channel.exit_status)
        name = self._signal()
        if not name:
            raise HostCommandFailed("the command ended and sshd did not say how", where=self._target.name)
        number: int = getattr(signal, f"SIG{name}", _UNKNOWN_SIGNAL)
        return -number

    def group_to_end(self, patience: float) -> int:
        """Process group of a command that has not ended, 0 otherwise. Output that comes meanwhile is lost.

        Waits up to `patience` seconds where the login shell has not come to the command yet.
        """
        if self._released or not self.running or self._all_is_said():
            return 0
        deadline = self._clock.monotonic() + patience
        with contextlib.suppress(LauncherError):
            while not self._stdout.pid and self._clock.monotonic() < deadline and self.read(0.1) is not None:
                pass
        return self._stdout.pid if self.running else 0

    def release(self) -> bool:
        """Close the channel; False when that was done before."""
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
        # the flags are set after the last bytes: whoever sees one set must look for bytes once more
        return bool(self._channel.eof_received or self._channel.closed) and not (
            self._channel.recv_ready() or self._channel.recv_stderr_ready()
        )

    def _all_is_said(self) -> bool:
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

    def _disobedient(self) -> HostCommandFailed:
        said = (self._stdout.prelude + self._stderr.prelude).decode(errors="replace").strip()[-500:]
        user = f"{self._target.user}@{self._target.name}"
        message = f"the login shell of {user} did not run the command (exit {self._channel.exit_status})"
        return HostCommandFailed(
            f"{message}; it said: {said}" if said else f"{message} and said nothing",
            where=self._target.name,
            hint=f"try `{self._target.command()}`; the login shell must accept `-c COMMAND`",
        )


class SshStream:
    """Output of a remote command as it comes."""

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
        """How the command ended. Raises HostUnreachable, HostCommandFailed."""
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
            self._finish()  # whoever reads to the end need not close
            return None
        stdout, stderr = chunk
        if stderr:
            self._stderr = (self._stderr + stderr)[-STDERR_KEPT:]
        return stdout
