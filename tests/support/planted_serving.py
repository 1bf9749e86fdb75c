"""Runs single probes against the stand-in of `tests.serving`, with or without a planted fault."""

from __future__ import annotations

from typing import Any

from checks.after.probes.context import Context, parse_server
from checks.after.probes.every_reply import OBSERVERS, Exchange
from checks.after.probes.expectations import parse_expect
from checks.after.probes.registry import probes
from checks.vocabulary import Verdict
from launcher.client.endpoint import Endpoint
from launcher.client.probing.pool import run_probes
from launcher.client.probing.send import send
from launcher.client.server_info import identify_server
from launcher.transport.local import LocalTransport
from tests.serving.server import serving
from tests.support.validating import HastyClock


def verdicts(*ids: str, fault: str = "", odd: str | None = None, **options: Any) -> dict[str, Verdict]:
    """Return the verdicts of these probes on one server; an observer judges the replies to the others."""
    clock, entries = HastyClock(), {probe.id: probe for probe in probes()}
    with serving([fault] if fault else (), odd, **options) as (url, _):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", int(url.rpartition(":")[2]))
        info = identify_server(endpoint)
        context = Context(server=parse_server(info), suite="standard", expect=parse_expect({}))
        seen: list[Exchange] = []
        asked = [entries[name] for name in ids if entries[name].kind not in OBSERVERS]
        found = run_probes(asked, context, lambda ask: send(endpoint, ask, 60.0, clock), clock, seen=seen)
        judged = {result.verdict.id: result.verdict for result in found}
        endpoint.close()
    observers = [entries[name] for name in ids if entries[name].kind in OBSERVERS]
    return judged | {probe.id: OBSERVERS[probe.kind](probe, context, seen) for probe in observers}
