"""One Ask of a probe → one Answer. Nothing is retried, nothing raised: a failed request is an Answer with a fault."""

from __future__ import annotations

from msgspec.structs import replace

from checks.after.probes.exchange import Answer, Ask
from checks.after.probes.replies import failure, parse_events, parse_reply
from launcher.client.endpoint import Endpoint, EndpointBroken, EndpointForbidden, EndpointRefused, EndpointTimeout
from launcher.clock import Clock
from launcher.errors import LauncherError


def send(endpoint: Endpoint, ask: Ask, timeout: float, clock: Clock) -> Answer:
    """Send and wait. `timeout` (seconds) holds where the ask names none."""
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
                # each event came in time, the answer did not: a drip never runs into a read time-out
                fault = f"the stream is not at its end after {limit:.0f} s"
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
