"""Is it ready? Proof that the launched process itself answers, never the log line alone.

A server that lost the race for its port prints "fired up and ready to roll" all the same: its warm-up was answered
by whoever owns the port. So: the listener must belong to the launched tree, and /server_info must name this run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from launcher.client.endpoint import (
    Endpoint,
    EndpointBroken,
    EndpointForbidden,
    EndpointRefused,
    EndpointTimeout,
)
from launcher.errors import HostUnreachable
from launcher.plan.launch_plan import LaunchPlan
from launcher.run.remote import Look


class Identity(Struct, frozen=True):
    """Whether the answering server is ours: `faults` empty means yes, `evidence` says how we know."""

    evidence: tuple[str, ...]
    faults: tuple[str, ...]


def health(endpoint: Endpoint, timeout: float = 3.0) -> int:
    """HTTP status of /health; 0 when the connection is refused, -1 when there was no answer in time."""
    try:
        return endpoint.get("/health", timeout).status
    except EndpointRefused:
        return 0
    except EndpointForbidden:
        return 401
    except (EndpointTimeout, EndpointBroken, HostUnreachable):
        return -1


def identify(info: Mapping[str, Any], seen: Look, plan: LaunchPlan) -> Identity:
    """Judge a server by what it says and by who listens."""
    evidence, faults = [], []
    if seen.listening:
        evidence.append(f"port {plan.server_port} is held by a process of this run")
    elif seen.foreign_listeners:
        pids = ", ".join(map(str, seen.foreign_listeners))
        faults.append(f"port {plan.server_port} is held by pid {pids}, which is not of this run")
    if not info:
        faults.append("neither /server_info nor /get_server_info answers")
    for key, expected in (
        ("model_path", plan.model_path),
        ("served_model_name", plan.served_name),
        ("port", plan.server_port),
    ):
        actual = info.get(key)
        if actual is None or not expected:
            continue
        if _same(actual, expected):
            evidence.append(f"{key} is {actual}")
        else:
            faults.append(f"the server names {key} {actual}, not {expected}")
    if not seen.listening and not seen.foreign_listeners and not faults:
        evidence.append("who listens could not be seen (not allowed to)")
    return Identity(tuple(evidence), tuple(faults))


def _same(actual: object, expected: object) -> bool:
    if str(actual) == str(expected):
        return True
    text = str(expected)
    return text.startswith("~/") and str(actual).endswith(text[1:])
