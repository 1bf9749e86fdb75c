"""Runs httpx over sockets that a Transport opens, so that requests reach a port which only the host can reach.

This module does not know SGLang; other rooms use `endpoint`.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

import httpcore
import httpx

from launcher.transport.base import Transport

CONNECT_TIMEOUT = 10.0


class Tunnel(httpx.BaseTransport):
    """httpx on top of httpcore, with sockets opened by a Transport."""

    def __init__(self, transport: Transport) -> None:
        self._backend = _Backend(transport)
        self._pool = httpcore.ConnectionPool(
            network_backend=self._backend,
            max_connections=None,
            max_keepalive_connections=64,
            keepalive_expiry=3.0,  # uvicorn closes idle connections after 5 s
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        core = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            reply = self._send_with_retry(core)
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            raise httpx.ConnectError(str(error), request=request) from error
        except httpcore.TimeoutException as error:
            raise httpx.ReadTimeout(str(error), request=request) from error
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise httpx.ReadError(str(error), request=request) from error
        return httpx.Response(reply.status, headers=reply.headers, stream=_Body(reply), extensions=reply.extensions)

    def _send_with_retry(self, request: httpcore.Request) -> httpcore.Response:
        """Send a request; repeat a GET once, on a new connection, if it ended before the first byte of the reply.

        The server may have closed an idle connection before the pool noticed: through SSH the close arrives late.
        """
        try:
            return self._pool.handle_request(request)
        except (httpcore.RemoteProtocolError, httpcore.ReadError):
            if request.method != b"GET":
                raise
        return self._pool.handle_request(request)

    def close(self) -> None:
        self._backend.abort()
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, reply: httpcore.Response) -> None:
        self._reply = reply

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._reply.iter_stream()
        except httpcore.TimeoutException as error:
            raise httpx.ReadTimeout(str(error)) from error
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise httpx.ReadError(str(error)) from error

    def close(self) -> None:
        self._reply.close()


class _Backend(httpcore.NetworkBackend):
    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._streams: WeakSet[_Stream] = WeakSet()

    def abort(self) -> None:
        """End every connection, even while another thread reads from it."""
        for stream in list(self._streams):
            stream.abort()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002  the transport sets both
        socket_options: Any = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        try:
            stream = _Stream(self._transport.connect(host, port, timeout or CONNECT_TIMEOUT))
            self._streams.add(stream)
            return stream
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error


class _Stream(httpcore.NetworkStream):
    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with _core_errors():
            self._sock.settimeout(timeout)  # also fails once another thread has closed the endpoint
            return self._sock.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with _core_errors():
            self._sock.settimeout(timeout)
            self._sock.sendall(buffer)

    def close(self) -> None:
        self._sock.close()

    def abort(self) -> None:
        """Wake a thread that waits for bytes: `close` alone does not end its poll."""
        with suppress(OSError, EOFError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def get_extra_info(self, info: str) -> Any:
        """Return only what httpcore queries before it reuses a connection: whether the other side has closed it."""
        if info != "is_readable":
            return None
        return _readable(self._sock)


@contextmanager
def _core_errors() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise httpcore.ReadTimeout(str(error)) from error
    except OSError as error:
        raise httpcore.ReadError(str(error)) from error


def _readable(sock: socket.socket) -> bool:
    try:
        return bool(select.select([sock], [], [], 0)[0])
    except (OSError, ValueError):
        return True
