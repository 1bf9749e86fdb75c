"""A forwarded TCP stream that has the socket methods which httpcore uses.

paramiko's Channel almost suffices, but it reports a lost connection as a clean end: a truncated reply would look
complete.
"""

from __future__ import annotations

import socket
from types import TracebackType

import paramiko

from launcher.transport.ssh_dial import LiveTransport


class ChannelSocket:
    """A direct-tcpip channel that raises OSErrors as a socket does."""

    def __init__(self, channel: paramiko.Channel, transport: LiveTransport, peer: tuple[str, int]) -> None:
        self._channel = channel
        self._transport = transport
        self._peer = peer

    def recv(self, size: int, _flags: int = 0) -> bytes:
        """Return bytes, b"" at the end. Raises TimeoutError, ConnectionResetError when the SSH connection is lost."""
        data: bytes = self._channel.recv(size)
        if not data and not self._channel.eof_received and self._channel.closed:
            raise ConnectionResetError("the SSH connection was lost")
        return data

    def recv_into(self, buffer: memoryview | bytearray, size: int = 0, _flags: int = 0) -> int:
        """Receive into a buffer and return the number of bytes; raises the errors of `recv`."""
        data = self.recv(size or len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def send(self, data: bytes, _flags: int = 0) -> int:
        """Send some of the bytes and return their number. Raises TimeoutError, BrokenPipeError."""
        try:
            sent: int = self._channel.send(data)
        except TimeoutError:
            raise
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise BrokenPipeError(f"the stream is closed: {error}") from error
        if not sent and data:
            raise BrokenPipeError("the stream is closed")
        return sent

    def sendall(self, data: bytes, _flags: int = 0) -> None:
        """Send all of the bytes. Raises TimeoutError, BrokenPipeError."""
        view = memoryview(data)
        while view:
            view = view[self.send(bytes(view[: 1 << 18])) :]

    def settimeout(self, seconds: float | None) -> None:
        """Set the timeout of each later call; None waits forever."""
        self._channel.settimeout(seconds)

    def gettimeout(self) -> float | None:
        return self._channel.gettimeout()

    def setsockopt(self, *_: object) -> None:
        """Do nothing: the SSH connection below already has TCP_NODELAY."""

    def shutdown(self, how: int) -> None:
        """Shut down one or both directions, as for a socket."""
        if how in {socket.SHUT_WR, socket.SHUT_RDWR}:
            self._channel.shutdown_write()
        if how in {socket.SHUT_RD, socket.SHUT_RDWR}:
            self._channel.shutdown_read()

    def fileno(self) -> int:
        """Return a descriptor that polls as readable when bytes have arrived; read with `recv`, not from it."""
        return self._channel.fileno()

    def getpeername(self) -> tuple[str, int]:
        return self._peer

    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", 0)

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> ChannelSocket:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()
