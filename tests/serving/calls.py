"""A request over HTTP as the routes see it, and the replies they may give."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field


class Call(Struct):
    """One HTTP request."""

    method: str
    path: str
    headers: Mapping[str, str]
    query: str = ""
    body: dict[str, Any] = field(default_factory=dict)
    number: int = 0
    """Its number among the requests that generate."""
    idle_before: float = 0.0
    arrived: float = field(default_factory=time.monotonic)
    gone: Any = None
    """A function that says whether the client has left."""

    @property
    def stream(self) -> bool:
        """Whether the reply is to be a stream."""
        return bool(self.body.get("stream"))


class Reply(Struct):
    """A whole reply: JSON if the body is no text."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    kind: str = "application/json"


class Streamed(Struct):
    """A stream of events: lists of JSON bodies, one list for each step."""

    steps: Iterator[list[Any]]
    headers: dict[str, str] = field(default_factory=dict)


class Refusal(Exception):
    """A request that is answered with an error, in the shape of its route."""

    def __init__(self, message: str, status: int = 400, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.headers = message, status, dict(headers or {})


_KINDS = {
    400: "BadRequestError",
    401: "Unauthorized",
    404: "NotFoundError",
    429: "RateLimitError",
    500: "InternalServerError",
}


def refused(refusal: Refusal, path: str, release: str) -> Reply:
    """Return the reply to a refused request, in the shape that the route of this release uses."""
    native = not path.startswith("/v1/")
    if native or refusal.status in {401, 429}:
        body: Any = {"error": {"message": refusal.message}} if native else {"error": refusal.message}
    else:
        kind = _KINDS.get(refusal.status, "BadRequestError")
        body = {"object": "error", "message": refusal.message, "type": kind, "param": None, "code": refusal.status}
    return Reply(body, refusal.status, refusal.headers)
