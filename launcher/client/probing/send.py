"""Turns one Ask of a probe into one Answer. Nothing is raised: a failure is an Answer with a fault.

Only a rate limit is obeyed: a request that it refused is sent again when it says, for LIMITED seconds at most.

Sending many requests is `pool`; stopping when the engine hangs is `guard`.
"""

from __future__ import annotations

from msgspec.structs import replace

from checks.after.probes.exchange import Answer, Ask
from checks.after.probes.replies import failure, parse_events, parse_reply
from launcher.client.endpoint import Endpoint, EndpointBroken, EndpointForbidden, EndpointRefused, EndpointTimeout
from launcher.clock import Clock
from launcher.errors import LauncherError

LIMITED = 60.0  # seconds for which a rate limit is obeyed
TOO_MANY = 429


def send(endpoint: Endpoint, ask: Ask, timeout: float, clock: Clock) -> Answer:
    """Send a request and wait for its Answer. `timeout` (seconds) applies when the ask does not set one."""
    if ask.pause:
        clock.sleep(ask.pause)
    limit = ask.timeout or timeout
    until = clock.monotonic() + LIMITED
    while True:
        answer, wait = _once(endpoint, ask, limit, clock)
        if answer.status != TOO_MANY:
            return answer
        if clock.monotonic() + wait > until:
            return replace(answer, fault="limited", error="HTTP 429: a rate limit refuses the request")
        clock.sleep(max(wait, 0.2))


def _once(endpoint: Endpoint, ask: Ask, limit: float, clock: Clock) -> tuple[Answer, float]:
    """Send a request once; return its answer, and the seconds that a rate limit asks to wait."""
    started = clock.monotonic()
    try:
        if ask.stream:
            return _stream(endpoint, ask, limit, clock)
        reply = endpoint.get(ask.path, limit) if ask.payload is None else endpoint.post(ask.path, ask.payload, limit)
    except LauncherError as error:
        return failure(ask.path, _fault(error), error.message, clock.monotonic() - started), 0.0
    return parse_reply(ask.path, reply.status, reply.body, reply.seconds), reply.retry_after


def _stream(endpoint: Endpoint, ask: Ask, limit: float, clock: Clock) -> tuple[Answer, float]:
    started = clock.monotonic()
    events: list[tuple[float, bytes]] = []
    fault = ""
    with endpoint.stream(ask.path, ask.payload, limit) as reply:
        if reply.status != 200:
            return parse_reply(ask.path, reply.status, reply.body(), clock.monotonic() - started), reply.retry_after
        for when, line in reply:
            events.append((when, line))
            if ask.cut_after and len(events) >= ask.cut_after:
                break
            if when > limit:
                # a slow stream never hits the read timeout, because each event arrives in time
                fault = f"the stream did not end within {limit:.0f} s"
                break
        status = reply.status
    seconds = clock.monotonic() - started
    if fault:
        return failure(ask.path, "timeout", fault, seconds), 0.0
    return replace(parse_events(ask.path, status, events, seconds, cut=bool(ask.cut_after)), began=started), 0.0


def _fault(error: LauncherError) -> str:
    match error:
        case EndpointRefused():
            return "refused"
        case EndpointTimeout():
            return "timeout"
        case EndpointBroken():
            return "broken"
        case EndpointForbidden():
            return "forbidden"
        case _:
            return "unreachable"
