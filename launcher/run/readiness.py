"""Proves that a server is ready: the launched process itself must answer; the log line is never enough.

A server that lost the race for its port still prints "fired up and ready to roll": the owner of the port answered its
warm-up. So the listener must be a process of the run, and /server_info must report the server args of the run.
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
    """Whether the server that answers is this run: yes when `faults` is empty; `evidence` lists the proof."""

    evidence: tuple[str, ...]
    faults: tuple[str, ...]


def health(endpoint: Endpoint, timeout: float = 3.0) -> int:
    """Return the HTTP status of /health; 0 when the connection is refused, -1 when there is no reply in time."""
    try:
        return endpoint.get("/health", timeout).status
    except EndpointRefused:
        return 0
    except EndpointForbidden:
        return 401
    except (EndpointTimeout, EndpointBroken, HostUnreachable):
        return -1


def identify(info: Mapping[str, Any], look: Look, plan: LaunchPlan) -> Identity:
    """Judge whether a server is the run of `plan`, by its own report and by the processes that listen on its port."""
    evidence, faults = [], []
    if look.listening:
        evidence.append(f"a process of this run listens on port {plan.server_port}")
    elif look.foreign_listeners:
        pids = ", ".join(map(str, look.foreign_listeners))
        faults.append(f"port {plan.server_port} belongs to pid {pids}, which is not a process of this run")
    if not info:
        faults.append("neither /server_info nor /get_server_info returned a report")
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
            faults.append(f"the server reports {key} `{actual}`, expected `{expected}`")
    if not look.listening and not look.foreign_listeners and not faults:
        evidence.append("the process that listens on the port is not visible to this user")
    return Identity(tuple(evidence), tuple(faults))


def _same(actual: object, expected: object) -> bool:
    if str(actual) == str(expected):
        return True
    text = str(expected)
    return text.startswith("~/") and str(actual).endswith(text[1:])
