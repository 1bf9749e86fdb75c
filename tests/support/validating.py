"""Validates the stand-in server with one call, for tests."""

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
# The stand-in answers in microseconds, so its measured speed is mostly noise of this machine.
LENIENT = {"speed": {"margin": 0.95, "floor": 0.01, "repeats": 3}, "timeout": 60}
# Of a server with every feature, what the stand-in does not show.
UNSHOWN = {
    "conversation",
    "long-prompt-codes",
    "pictures",
    "sampling-distribution",
    "several-tools",
    "system-and-history",
}
SLOW = ("speed", "accuracy-word-problems", "accuracy-word-problems-few-shot", "accuracy-general-knowledge")


class HastyClock(SystemClock):
    """A clock that does not wait for the pauses of probes: only their order matters to the stand-in."""

    def sleep(self, seconds: float) -> None:
        super().sleep(min(seconds, 0.2))


def requested(expect: Mapping[str, Any] = LENIENT, baseline: Mapping[str, Any] | None = None) -> ValidationRequest:
    """Return a ValidationRequest, made from a profile's `expect`."""
    return ValidationRequest(expect=parse_expect(expect), baseline=baseline)


def subject_at(endpoint: Endpoint, **fields: Any) -> Subject:
    """Return the Subject of a server on this machine's loopback."""
    return Subject(endpoint=endpoint, transport=LocalTransport(), **fields)


def run(
    *faults: str, suite: str = "smoke", info: Mapping[str, Any] | None = None, **options: Any
) -> tuple[Validation, State]:
    """Run one validation of a stand-in with these faults; returns it and the state of the stand-in."""
    expect = {**LENIENT, **options.pop("expect", {}), "suite": suite}
    request, inform = requested(expect, options.pop("baseline", None)), options.pop("inform", lambda _: None)
    with serving(*faults, **(info or {})) as (port, state):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        validation = run_suite(subject_at(endpoint, **options), request, HastyClock(), inform)
        endpoint.close()
    return validation, state
