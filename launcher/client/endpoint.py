"""HTTP to the server under test, through whatever transport reaches it: with `tunnel` the only one that knows httpx.

The server's port need not be reachable from here: connections are opened on the host by the transport. An Endpoint
may be shared between threads; each concurrent request takes a connection of its own.
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

KEY_HINT = "export it and name the variable: `launch validate … --api-key-env NAME`; a run takes its profile's"


class EndpointRefused(LauncherError):
    """Nothing listens on the port."""


class EndpointTimeout(LauncherError):
    """The server accepted the request and did not answer in time."""


class EndpointBroken(LauncherError):
    """The connection ended in the middle, or what came was not HTTP."""


class EndpointForbidden(UsageError):
    """The server answers, but not without another API key (401, 403)."""


class ReplyError(LauncherError):
    """The reply is not what its content type promises."""


class Reply(Struct, frozen=True):
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

    def __init__(self, reply: httpx.Response, started: float, clock: Clock) -> None:
        self.status = reply.status_code
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
        """Everything, for a reply that is no stream: a refusal says why in plain JSON. Not after iterating."""
        return self._reply.read()


class Endpoint:
    """One SGLang server. `api_key` is sent as a bearer token; it is in no message, and no repr shows it."""

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
        """GET. Raises EndpointRefused, EndpointTimeout, EndpointBroken, EndpointForbidden."""
        return self._send("GET", path, None, timeout)

    def post(self, path: str, payload: object, timeout: float = 120.0) -> Reply:
        """POST of a JSON body. Raises as `get`; the time-out holds between two received pieces, too."""
        return self._send("POST", path, payload, timeout)

    @contextmanager
    def stream(self, path: str, payload: object, timeout: float = 120.0) -> Iterator[StreamReply]:
        """POST whose answer is a stream of events; leaving the block closes it and so aborts."""
        started = self._clock.monotonic()
        with (
            _translated(self.address, path),
            self._client.stream("POST", path, json=payload, timeout=_limits(timeout)) as reply,
        ):
            self._admitted(reply.status_code, path)
            yield StreamReply(reply, started, self._clock)

    def close(self) -> None:
        """Close all connections; requests under way in other threads end at once, as broken."""
        self._client.close()

    def _send(self, method: str, path: str, payload: object, timeout: float) -> Reply:
        started = self._clock.monotonic()
        with _translated(self.address, path):
            content = None if payload is None else json.dumps(payload).encode()
            headers = {"Content-Type": "application/json"} if content is not None else {}
            reply = self._client.request(method, path, content=content, headers=headers, timeout=_limits(timeout))
        self._admitted(reply.status_code, path)
        return Reply(reply.status_code, reply.content, self._clock.monotonic() - started)

    def _admitted(self, status: int, path: str) -> None:
        if status in (401, 403):
            what = "refuses this API key" if self.api_key else "wants an API key"
            where = f"http://{self.address}{path}"
            raise EndpointForbidden(f"the server {what} (HTTP {status})", where=where, hint=KEY_HINT)


def planned(transport: Transport, plan: LaunchPlan) -> Endpoint:
    """The server of a plan. Its key is taken from here where it is set; without it the server says that it wants one.

    Raises UsageError for a key that cannot be sent.
    """
    name = plan.secret_flags.get("api-key", "")
    key = api_key(name) if os.environ.get(name) else None
    return Endpoint(transport, plan.probe_host, plan.server_port, api_key=key)


def api_key(variable: str) -> str:
    """The key in a variable of this process's environment. Raises UsageError when there is none that can be sent."""
    key = fetch([variable])[variable]
    if not (key.isascii() and key.isprintable()) or key != key.strip():
        raise UsageError(f"the key in {variable} holds blanks at its ends, or what no HTTP header may")
    return key


def _limits(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT))


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
