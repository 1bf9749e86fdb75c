"""HTTP to the server under test, through whatever transport reaches it: the only module that knows httpx.

The server's port need not be reachable from here: connections are opened on the host by the transport. An Endpoint
may be shared between threads; each concurrent request takes a connection of its own.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

from launcher.errors import LauncherError
from launcher.transport.base import Transport

CONNECT_TIMEOUT = 10.0


class EndpointRefused(LauncherError):
    """Nothing listens on the port."""


class EndpointTimeout(LauncherError):
    """The server accepted the request and did not answer in time."""


class EndpointBroken(LauncherError):
    """The connection ended in the middle, or what came was not HTTP."""


class ReplyError(LauncherError):
    """The reply is not what its content type promises."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One complete answer. `seconds` is from sending to the last byte."""

    status: int
    body: bytes
    seconds: float

    def json(self) -> Any:
        """The body as JSON. Raises ReplyError."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise ReplyError(f"not JSON: {self.body[:120]!r}") from error


class StreamReply:
    """A server-sent-events answer: iterate for (seconds since sending, data of one event)."""

    def __init__(self, reply: httpx.Response, started: float) -> None:
        self.status = reply.status_code
        self._reply = reply
        self._started = started

    def __iter__(self) -> Iterator[tuple[float, bytes]]:
        return _events(self._reply, self._started)

    def body(self) -> bytes:
        """Everything, for a reply that is no stream: a refusal says why in plain JSON. Not after iterating."""
        return self._reply.read()


class Endpoint:
    """One SGLang server. `api_key` is sent as a bearer token and appears nowhere else."""

    def __init__(self, transport: Transport, host: str, port: int, *, api_key: str | None = None) -> None:
        self.address = f"{host}:{port}"
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.Client(
            transport=_Tunnel(transport), base_url=f"http://{_bracketed(host)}:{port}", headers=headers, trust_env=False
        )

    def get(self, path: str, timeout: float = 10.0) -> Reply:
        """GET. Raises EndpointRefused, EndpointTimeout, EndpointBroken."""
        return self._send("GET", path, None, timeout)

    def post(self, path: str, payload: object, timeout: float = 120.0) -> Reply:
        """POST of a JSON body. Raises as `get`; the time-out holds between two received pieces, too."""
        return self._send("POST", path, payload, timeout)

    @contextmanager
    def stream(self, path: str, payload: object, timeout: float = 120.0) -> Iterator[StreamReply]:
        """POST whose answer is a stream of events; leaving the block closes it and so aborts."""
        started = time.perf_counter()
        with (
            _translated(self.address, path),
            self._client.stream("POST", path, json=payload, timeout=_limits(timeout)) as reply,
        ):
            yield StreamReply(reply, started)

    def close(self) -> None:
        """Close idle connections."""
        self._client.close()

    def _send(self, method: str, path: str, payload: object, timeout: float) -> Reply:
        started = time.perf_counter()
        with _translated(self.address, path):
            content = None if payload is None else json.dumps(payload).encode()
            headers = {"Content-Type": "application/json"} if content is not None else {}
            reply = self._client.request(method, path, content=content, headers=headers, timeout=_limits(timeout))
        return Reply(reply.status_code, reply.content, time.perf_counter() - started)


def _limits(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT))


def _events(reply: httpx.Response, started: float) -> Iterator[tuple[float, bytes]]:
    pending = b""
    for chunk in reply.iter_raw():
        now = time.perf_counter() - started
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield now, line[5:].strip()


@contextmanager
def _translated(address: str, path: str) -> Iterator[None]:
    where = f"http://{address}{path}"
    try:
        yield
    except httpx.ConnectError as error:
        raise EndpointRefused(f"nothing answers at {where}: {error}", where=where) from error
    except httpx.TimeoutException as error:
        raise EndpointTimeout(f"no answer in time from {where}", where=where) from error
    except httpx.HTTPError as error:
        raise EndpointBroken(f"the answer from {where} broke off: {error}", where=where) from error
    except RuntimeError as error:
        if "closed" not in str(error):
            raise
        # httpx's way to say that `close` was called meanwhile: the run under test has ended
        raise EndpointRefused(f"{where} is not asked any more", where=where) from error


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Tunnel(httpx.BaseTransport):
    """httpx on top of httpcore, with sockets opened by a Transport."""

    def __init__(self, transport: Transport) -> None:
        self._pool = httpcore.ConnectionPool(
            network_backend=_Backend(transport),
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
            reply = self._ask(core)
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            raise httpx.ConnectError(str(error), request=request) from error
        except httpcore.TimeoutException as error:
            raise httpx.ReadTimeout(str(error), request=request) from error
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise httpx.ReadError(str(error), request=request) from error
        return httpx.Response(reply.status, headers=reply.headers, stream=_Body(reply), extensions=reply.extensions)

    def _ask(self, request: httpcore.Request) -> httpcore.Response:
        """A kept connection may have been closed meanwhile without us knowing (through SSH the news travels): a GET
        that got not one byte back, but an end or a reset, is asked again, on a new one."""
        try:
            return self._pool.handle_request(request)
        except (httpcore.RemoteProtocolError, httpcore.ReadError):
            if request.method != b"GET":
                raise
        return self._pool.handle_request(request)

    def close(self) -> None:
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

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002  the transport decides both
        socket_options: Any = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        try:
            return _Stream(self._transport.connect(host, port, timeout or CONNECT_TIMEOUT))
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error


class _Stream(httpcore.NetworkStream):
    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._sock.settimeout(timeout)
        with _core_errors():
            return self._sock.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._sock.settimeout(timeout)
        with _core_errors():
            self._sock.sendall(buffer)

    def close(self) -> None:
        self._sock.close()

    def get_extra_info(self, info: str) -> Any:
        """Only what httpcore asks for before it reuses a connection: has the other side closed it?"""
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
