"""Turns one Ask of a probe into one Answer. Nothing is retried, nothing raised: a failure is an Answer with a fault.

Sending many requests is `pool`; stopping when the engine hangs is `guard`.
"""

from __future__ import annotations

from msgspec.structs import replace

from checks.after.probes.exchange import Answer, Ask
from checks.after.probes.replies import failure, parse_events, parse_reply
from launcher.client.endpoint import Endpoint, EndpointBroken, EndpointForbidden, EndpointRefused, EndpointTimeout
from launcher.clock import Clock
from launcher.errors import LauncherError


def send(endpoint: Endpoint, ask: Ask, timeout: float, clock: Clock) -> Answer:
    """Send a request and wait for its Answer. `timeout` (seconds) applies when the ask does not set one."""
    if ask.pause:
        clock.sleep(ask.pause)
    limit = ask.timeout or timeout
    started = clock.monotonic()
    try:
        if ask.stream:
            return _stream(endpoint, ask, limit, clock)
        reply = endpoint.get(ask.path, limit) if ask.payload is None else endpoint.post(ask.path, ask.payload, limit)
    except LauncherError as error:
        return failure(ask.path, _fault(error), error.message, clock.monotonic() - started)
    return parse_reply(ask.path, reply.status, reply.body, reply.seconds)


def _stream(endpoint: Endpoint, ask: Ask, limit: float, clock: Clock) -> Answer:
    started = clock.monotonic()
    events: list[tuple[float, bytes]] = []
    fault = ""
    with endpoint.stream(ask.path, ask.payload, limit) as reply:
        if reply.status != 200:
            return parse_reply(ask.path, reply.status, reply.body(), clock.monotonic() - started)
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
        return failure(ask.path, "timeout", fault, seconds)
    return replace(parse_events(ask.path, status, events, seconds, cut=bool(ask.cut_after)), began=started)


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
