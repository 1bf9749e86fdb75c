"""The Transport for a machine behind SSH: commands and TCP streams over one connection.

`ssh_dial` makes the connection, `quote` the command lines. Only the `ssh*` modules import paramiko; they are loaded
only when a remote host is used.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from typing import cast

import paramiko

from launcher.clock import Clock, SystemClock
from launcher.errors import HostCommandFailed, HostUnreachable, LauncherError, TransportTimeout
from launcher.transport import quote
from launcher.transport.base import Command, Result
from launcher.transport.ssh_dial import Connection, Timing, dial, unreachable
from launcher.transport.ssh_session import HEARTBEAT, Session, SshStream
from launcher.transport.ssh_socket import ChannelSocket
from launcher.transport.target import SshTarget

# sshd's default MaxSessions is 10, and it frees a closed session with a delay; TCP streams do not count
SESSIONS = 8
_PATIENCE = 1.0  # seconds to wait for a login shell to start the command that must be ended

# SIGTERM, half a second to exit, SIGKILL; $0 is the process group
_KILL = """
kill -s TERM -- "-$0" || exit 0
for i in 1 2 3 4 5; do sleep 0.1; kill -s 0 -- "-$0" || exit 0; done
kill -s KILL -- "-$0"
"""


class SshTransport:
    """One connection to one host, made when first needed and again after a loss. Commands are never repeated."""

    def __init__(self, target: SshTarget, *, timing: Timing | None = None, clock: Clock | None = None) -> None:
        self._target = target
        self._timing = timing or Timing()
        self._clock = clock or SystemClock()
        self._connection: Connection | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(SESSIONS)
        # paramiko stores the reason of a refusal once for all channels: two channels refused at the same time could
        # report each other's reason, or none
        self._opening = threading.Lock()

    @property
    def name(self) -> str:
        return self._target.name

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the connection for the user."""
        return self._connection.warnings if self._connection is not None else ()

    def open(self) -> None:
        """Connect now. Raises HostUnreachable."""
        self._live()

    def run(self, command: Command) -> Result:
        """Run a command until every process that holds its output open has closed it.

        Raises HostUnreachable, TransportTimeout, and HostCommandFailed when the login shell does not run the command.
        """
        began = self._clock.monotonic()
        session = self._start(command)
        try:
            stdout, stderr = self._drain(session, command)
            exit_code = session.exit_code()
        finally:
            self._finish(session)
        return Result(exit=exit_code, stdout=stdout, stderr=stderr, seconds=self._clock.monotonic() - began)

    def stream(self, command: Command) -> SshStream:
        """Start a command and return its output as a Stream."""
        session = self._start(command)
        return SshStream(session, lambda: self._finish(session), self._clock)

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """Open a TCP stream from the machine.

        Raises ConnectionRefusedError, TimeoutError, HostUnreachable, and HostCommandFailed if sshd forbids forwarding.
        """
        transport = self._live().transport
        try:
            with self._opening:
                channel = transport.open_channel("direct-tcpip", (host, port), ("127.0.0.1", 0), timeout=timeout)
        except paramiko.ChannelException as error:
            if error.code == 1:
                raise HostCommandFailed(
                    f"the sshd on `{self.name}` forbids TCP forwarding",
                    where=self.name,
                    hint="set `AllowTcpForwarding yes` in its sshd_config",
                ) from error
            raise ConnectionRefusedError(f"{host}:{port} on {self.name}: {error.text}") from error
        except (paramiko.SSHException, OSError, EOFError) as error:
            if transport.is_active():
                raise TimeoutError(f"{host}:{port} on {self.name} did not answer within {timeout:g} s") from error
            raise unreachable(self._target, error) from error
        # ChannelSocket has the methods of a socket that httpcore uses
        return cast(socket.socket, ChannelSocket(channel, transport, (host, port)))

    def close(self) -> None:
        """Close the connection. May be called twice."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    def _live(self) -> Connection:
        with self._lock:
            if self._closed:
                raise HostUnreachable(
                    f"the launcher has already closed the connection to `{self.name}`", where=self.name
                )
            if self._connection is not None and _is_dead(self._connection):
                self._connection.close()
                self._connection = None
            if self._connection is None:
                self._connection = dial(self._target, self._timing, self._clock)
            return self._connection

    def _start(self, command: Command) -> Session:
        if not self._slots.acquire(timeout=command.timeout):
            raise TransportTimeout(
                f"no free SSH session for `{command.label}`: {SESSIONS} commands are running on `{self.name}`",
                where=self.name,
            )
        try:
            return self._launch(command, self._live())
        except BaseException:
            self._slots.release()
            raise

    def _launch(self, command: Command, connection: Connection) -> Session:
        line = quote.login_line(quote.script(command))
        deadline = self._clock.monotonic() + command.timeout
        try:
            channel = self._open_session(connection.transport, deadline)
            self._execute(channel, line, connection)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise unreachable(self._target, error) from error
        session = Session(channel, connection, self._target, self._clock)
        session.feed(command.stdin)
        return session

    def _execute(self, channel: paramiko.Channel, line: str, connection: Connection) -> None:
        try:
            channel.exec_command(line.encode())
        except (paramiko.SSHException, OSError, EOFError) as error:
            channel.close()
            if _is_dead(connection):
                raise
            raise HostCommandFailed(
                f"the sshd on `{self.name}` did not run the command: {error}", where=self.name
            ) from error

    def _open_session(self, transport: paramiko.Transport, deadline: float) -> paramiko.Channel:
        while True:
            try:
                with self._opening:
                    return transport.open_session(timeout=self._timing.channel)
            except paramiko.ChannelException as error:
                # MaxSessions: the server frees a session some time after it was closed
                if error.code != 2 or self._clock.monotonic() > deadline:
                    raise HostCommandFailed(
                        f"`{self.name}` did not open another SSH session: {error.text}",
                        where=self.name,
                        hint="raise `MaxSessions` in its sshd_config",
                    ) from error
            self._clock.sleep(random.uniform(0.02, 0.1))

    def _drain(self, session: Session, command: Command) -> tuple[bytes, bytes]:
        deadline = self._clock.monotonic() + command.timeout
        stdout: list[bytes] = []
        stderr: list[bytes] = []
        while True:
            left = deadline - self._clock.monotonic()
            if left <= 0:
                raise TransportTimeout(
                    f"`{command.label}` did not finish within {command.timeout:g} s", where=self.name
                )
            chunk = session.read(min(left, HEARTBEAT))
            if chunk is None:
                return b"".join(stdout), b"".join(stderr)
            stdout.append(chunk[0])
            stderr.append(chunk[1])

    def _finish(self, session: Session) -> None:
        """Release a session; end a command that is still running, because sshd would not."""
        group = session.group_to_end(_PATIENCE)
        if not session.release():
            return
        kill = Command(argv=("sh", "-c", _KILL, str(group)), label="kill", timeout=5)
        try:
            if group and not _is_dead(session.connection):
                with contextlib.suppress(LauncherError):
                    kill_session = self._launch(kill, session.connection)
                    self._drain(kill_session, kill)
                    kill_session.release()
        finally:
            self._slots.release()


def _is_dead(connection: Connection) -> bool:
    return connection.transport.is_silent() or not connection.transport.is_active()
