"""Validating the stand-in server: one call for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checks.after.probes.expectations import parse_expect
from checks.after.validation import Validation
from launcher.client.endpoint import Endpoint
from launcher.clock import SystemClock
from launcher.flows.validate.request import Subject, ValidationRequest
from launcher.flows.validate.suite import run_suite
from launcher.transport.local import LocalTransport
from tests.support.fake_server import State, serving

TOOLS = {"tool_call_parser": "hermes"}
THINKS = {"reasoning_parser": "qwen3"}
DRAFTS = {"speculative_algorithm": "EAGLE", "speculative_num_steps": 3, "speculative_num_draft_tokens": 4}
ADAPTED = {"lora_paths": [{"lora_name": "poet", "lora_path": "/models/poet"}]}
EVERYTHING = {**TOOLS, **THINKS, **DRAFTS, **ADAPTED}
# The stand-in answers in microseconds, so that its speed is mostly the noise of this machine.
LENIENT = {"speed": {"margin": 0.95, "floor": 0.01, "repeats": 3}, "timeout": 60}
SLOW = ("speed", "accuracy-word-problems", "accuracy-word-problems-few-shot", "accuracy-general-knowledge")


def requested(expect: Mapping[str, Any] = LENIENT, baseline: Mapping[str, Any] | None = None) -> ValidationRequest:
    """A request as a profile's `expect` makes it."""
    return ValidationRequest(expect=parse_expect(expect), baseline=baseline)


def subject_at(endpoint: Endpoint, **more: Any) -> Subject:
    """A server reached over this machine's loopback."""
    return Subject(endpoint=endpoint, transport=LocalTransport(), **more)


def run(
    *faults: str, suite: str = "smoke", info: Mapping[str, Any] | None = None, **more: Any
) -> tuple[Validation, State]:
    """One validation of a stand-in with these faults."""
    expect = {**LENIENT, **more.pop("expect", {}), "suite": suite}
    request, inform = requested(expect, more.pop("baseline", None)), more.pop("inform", lambda _: None)
    with serving(*faults, **(info or {})) as (port, state):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        found = run_suite(subject_at(endpoint, **more), request, SystemClock(), inform)
        endpoint.close()
    return found, state
