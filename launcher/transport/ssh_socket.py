"""A forwarded TCP stream with the face of a socket, as far as httpcore looks at one.

paramiko's Channel nearly is one, but reads a lost connection as a clean end: a half answer would pass for a whole one.
"""

from __future__ import annotations

import socket
from types import TracebackType

import paramiko

from launcher.transport.ssh_dial import LiveTransport


class ChannelSocket:
    """A direct-tcpip channel. Errors are OSErrors, as from a socket."""

    def __init__(self, channel: paramiko.Channel, transport: LiveTransport, peer: tuple[str, int]) -> None:
        self._channel = channel
        self._transport = transport
        self._peer = peer

    def recv(self, size: int, _flags: int = 0) -> bytes:
        """Bytes, b"" at the end. Raises TimeoutError, ConnectionResetError when SSH itself is gone."""
        data: bytes = self._channel.recv(size)
        if not data and not self._channel.eof_received and self._channel.closed:
            raise ConnectionResetError("the SSH connection is gone")
        return data

    def recv_into(self, buffer: memoryview | bytearray, size: int = 0, _flags: int = 0) -> int:
        """As `recv`, into a buffer."""
        data = self.recv(size or len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def send(self, data: bytes, _flags: int = 0) -> int:
        """Some of the bytes. Raises TimeoutError, BrokenPipeError."""
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
        """All of the bytes. Raises TimeoutError, BrokenPipeError."""
        view = memoryview(data)
        while view:
            view = view[self.send(bytes(view[: 1 << 18])) :]

    def settimeout(self, seconds: float | None) -> None:
        """For each later call; None waits for ever."""
        self._channel.settimeout(seconds)

    def gettimeout(self) -> float | None:
        return self._channel.gettimeout()

    def setsockopt(self, *_: object) -> None:
        """There is no TCP of its own to tune: the SSH connection has TCP_NODELAY."""

    def shutdown(self, how: int) -> None:
        """As of a socket."""
        if how in {socket.SHUT_WR, socket.SHUT_RDWR}:
            self._channel.shutdown_write()
        if how in {socket.SHUT_RD, socket.SHUT_RDWR}:
            self._channel.shutdown_read()

    def fileno(self) -> int:
        """Readable when there are bytes; not to be read from."""
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
