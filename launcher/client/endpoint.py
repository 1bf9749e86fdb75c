"""HTTP to the server under test through a Transport. Only this module and `tunnel` import httpx.

The server's port need not be reachable from this machine: the transport opens the connections on the host. Threads may
share an Endpoint; each concurrent request uses its own connection.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from msgspec import Struct

from launcher.client.tunnel import CONNECT_TIMEOUT, Tunnel
from launcher.clock import Clock, SystemClock
from launcher.errors import LauncherError, UsageError
from launcher.plan.launch_plan import LaunchPlan
from launcher.secrets import fetch
from launcher.transport.base import Transport

KEY_HINT = (
    "export the key, then `launch validate … --api-key-env NAME`; a run reads the variable that its profile names"
)


class EndpointRefused(LauncherError):
    """The port refuses connections, or the endpoint was closed."""


class EndpointTimeout(LauncherError):
    """The server accepted the request but did not answer in time."""


class EndpointBroken(LauncherError):
    """The connection ended during the reply, or the reply was not HTTP."""


class EndpointForbidden(UsageError):
    """The server answers, but requires an API key or rejects the one that was sent (401, 403)."""


class ReplyError(LauncherError):
    """The body of the reply is not JSON."""


class Reply(Struct, frozen=True):
    """One complete reply. `seconds` is the time from sending to the last byte.

    `retry_after` is the number of seconds that a rate limit asks to wait; 0 without such a wish.
    """

    status: int
    body: bytes
    seconds: float
    retry_after: float = 0.0

    def json(self) -> Any:
        """Return the body as JSON. Raises ReplyError."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise ReplyError(f"the reply is not JSON: {self.body[:120]!r}") from error


class StreamReply:
    """A reply of server-sent events; iterating yields (seconds since sending, data of one event)."""

    def __init__(self, reply: httpx.Response, started: float, clock: Clock) -> None:
        self.status = reply.status_code
        self.retry_after = _retry_after(reply)
        self._reply = reply
        self._started = started
        self._clock = clock

    def __iter__(self) -> Iterator[tuple[float, bytes]]:
        pending = b""
        for chunk in self._reply.iter_raw():
            now = self._clock.monotonic() - self._started
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                if line.startswith(b"data:"):
                    yield now, line[5:].strip()

    def body(self) -> bytes:
        """Return the whole body of a reply that is not a stream: an error is plain JSON. Not valid after iterating."""
        return self._reply.read()


class Endpoint:
    """One SGLang server. `api_key` is sent as a bearer token; it appears in no message and no repr."""

    def __init__(
        self, transport: Transport, host: str, port: int, *, api_key: str | None = None, clock: Clock | None = None
    ) -> None:
        self.address = f"{host}:{port}"
        self.api_key = api_key
        self._clock = clock or SystemClock()
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.Client(
            transport=Tunnel(transport), base_url=f"http://{_bracketed(host)}:{port}", headers=headers, trust_env=False
        )

    def get(self, path: str, timeout: float = 10.0) -> Reply:
        """Send a GET. Raises EndpointRefused, EndpointTimeout, EndpointBroken, EndpointForbidden."""
        return self._send("GET", path, None, timeout)

    def post(self, path: str, payload: object, timeout: float = 120.0) -> Reply:
        """Post a JSON body. Raises the errors of `get`; `timeout` also limits the time between two received chunks."""
        return self._send("POST", path, payload, timeout)

    @contextmanager
    def stream(self, path: str, payload: object, timeout: float = 120.0) -> Iterator[StreamReply]:
        """Post a JSON body and stream the events of the reply; leaving the block aborts the request.

        Raises the errors of `get`.
        """
        started = self._clock.monotonic()
        with (
            _as_endpoint_errors(self.address, path),
            self._client.stream("POST", path, json=payload, timeout=_limits(timeout)) as reply,
        ):
            self._check_authorized(reply.status_code, path)
            yield StreamReply(reply, started, self._clock)

    def close(self) -> None:
        """Close all connections; requests in flight in other threads fail immediately as broken or refused."""
        self._client.close()

    def _send(self, method: str, path: str, payload: object, timeout: float) -> Reply:
        started = self._clock.monotonic()
        with _as_endpoint_errors(self.address, path):
            content = None if payload is None else json.dumps(payload).encode()
            headers = {"Content-Type": "application/json"} if content is not None else {}
            reply = self._client.request(method, path, content=content, headers=headers, timeout=_limits(timeout))
        self._check_authorized(reply.status_code, path)
        seconds = self._clock.monotonic() - started
        return Reply(reply.status_code, reply.content, seconds, _retry_after(reply))

    def _check_authorized(self, status: int, path: str) -> None:
        if status in (401, 403):
            problem = "rejected this API key" if self.api_key else "requires an API key"
            where = f"http://{self.address}{path}"
            raise EndpointForbidden(f"the server {problem} (HTTP {status})", where=where, hint=KEY_HINT)


def planned(transport: Transport, plan: LaunchPlan) -> Endpoint:
    """Return the endpoint of a planned server, with the API key from this process's environment if it is set.

    Without the key, requests raise EndpointForbidden. Raises UsageError for a key that cannot be sent.
    """
    name = plan.secret_flags.get("api-key", "")
    key = api_key(name) if os.environ.get(name) else None
    return Endpoint(transport, plan.probe_host, plan.server_port, api_key=key)


def api_key(variable: str) -> str:
    """Return the API key in a variable of this process's environment. Raises UsageError when it cannot be sent."""
    key = fetch([variable])[variable]
    if not (key.isascii() and key.isprintable()) or key != key.strip():
        raise UsageError(
            f"the key in `{variable}` begins or ends with a blank, or has characters that an HTTP header cannot contain"
        )
    return key


def _retry_after(reply: httpx.Response) -> float:
    """Return the seconds in Retry-After of a 429 or 503; a date counts as one second."""
    text = reply.headers.get("Retry-After", "") if reply.status_code in (429, 503) else ""
    if not text:
        return 0.0
    try:
        return max(0.0, float(text))
    except ValueError:
        return 1.0


def _limits(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT))


@contextmanager
def _as_endpoint_errors(address: str, path: str) -> Iterator[None]:
    where = f"http://{address}{path}"
    try:
        yield
    except httpx.ConnectError as error:
        raise EndpointRefused(f"cannot connect to {where}: {error}", where=where) from error
    except httpx.TimeoutException as error:
        raise EndpointTimeout(f"no answer in time from {where}", where=where) from error
    except httpx.HTTPError as error:
        raise EndpointBroken(f"the reply from {where} was cut off: {error}", where=where) from error
    except RuntimeError as error:
        if "closed" not in str(error):
            raise
        # what httpx raises after `close`: the run under test has ended
        raise EndpointRefused(f"request to {where} cancelled: the run has ended", where=where) from error


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
