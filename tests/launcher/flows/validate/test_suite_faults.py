"""Injected faults: the right probe reports each of them, and a healthy server causes no alarm."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import Struct, field

from checks.after.validation import Level, Validation, as_dict
from checks.vocabulary import Outcome, Verdict
from launcher.client.endpoint import Endpoint
from launcher.clock import SystemClock
from launcher.flows.validate.suite import run_suite
from launcher.transport.local import LocalTransport
from tests.support.fake_server import serving
from tests.support.validating import (
    ADAPTED,
    DRAFTS,
    EVERYTHING,
    SLOW,
    THINKS,
    TOOLS,
    UNSHOWN,
    requested,
    run,
    subject_at,
)


class Case(Struct, frozen=True):
    """A fault, the probe that must report it, and a part of the probe's message."""

    fault: str
    probe: str
    message: str = ""
    suite: str = "smoke"
    info: Mapping[str, Any] = field(default_factory=dict)
    expect: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.fault


SMOKE = (
    Case("health-503", "health", "503"),
    Case("wrong-model", "names-model", "another-model"),
    Case("no-models", "names-model", "no model"),
    Case("http-500", "prose", "HTTP 500"),
    Case("http-500-burst", "prose|limits|stream-equals-plain|greedy-repeat|known-answer|logprobs", "HTTP 500"),
    Case("http-503", "known-answer", "HTTP 503"),
    Case("hangs", "prose", "no answer in time", expect={"timeout": 0.5}),
    Case("half-closed", "prose", "was cut off"),
    Case("not-json", "prose", "not valid JSON"),
    Case("stuck-stream", "stream-equals-plain", "no answer in time", expect={"timeout": 0.7}),
    Case("slow-drip", "stream-equals-plain", "below the minimum of 20", expect={"speed": {"floor": 20}}),
    Case("stream-error", "stream-equals-plain", "illegal memory access"),
    Case("stream-cut", "stream-equals-plain", "without a finish reason"),
    Case("stream-no-finish", "stream-equals-plain", "finish reason is none"),
    Case("stream-differs", "stream-equals-plain", "differ at position"),
    Case("bangs", "prose", "'!'"),
    Case("bangs", "greedy-repeat", "token id 0"),
    Case("bangs-as-text", "prose", "'!'"),
    Case("loop-word", "prose", "true"),
    Case("loop-sentence", "prose", "repeated"),
    Case("one-character", "prose", "'+'"),
    Case("empty", "prose", "the answer is empty"),
    Case("whitespace", "prose", "only whitespace"),
    Case("replacement-characters", "prose", "U+FFFD"),
    Case("mojibake", "prose", "Latin-1"),
    Case("wrong-script", "prose", "Cjk"),
    Case("mixed-scripts", "prose", "mixed"),
    Case("word-salad", "prose", "not English"),
    Case("undecoded-tokens", "prose", "vocabulary glyphs"),
    Case("special-tokens", "known-answer", "<|im_end|>"),
    Case("wrong-answer", "known-answer", "wrong"),
    Case("never-stops", "known-answer", "the end-of-sequence token is not recognised"),
    Case("nondeterministic", "greedy-repeat", "differ after"),
    Case("nan-logprobs", "logprobs", "NaN"),
    Case("nan-literal", "logprobs", "NaN"),
    Case("flat-logprobs", "logprobs", "-11.93"),
    Case("random-weights", "logprobs", "too unlikely to the model"),
    Case("drops-logprobs", "logprobs", "no log-probabilities"),
    Case("ignores-max-tokens", "limits", "17 tokens"),
    Case("ignores-stop", "limits", "is ignored"),
    Case("wrong-finish", "limits", "finish reason stop"),
    Case("wrong-count", "limits", "15 tokens"),
)
DEEP = (
    Case("loop-paragraph", "long-prompt", "period 4"),
    Case("long-prompt-garbage", "long-prompt", "repeated"),
    Case("cache-hit-garbage", "cache-rerun", "cached tokens differs after"),
    Case("batch-garbage", "batch-sweep", "batches of 3"),
    Case("batch-garbage", "concurrency-agreement", "none in sequence"),
    Case("batch-of-5-garbage", "batch-sweep", "batches of 5 "),
    Case("state-leaks", "concurrency-agreement|batch-sweep", ""),
    Case("call-in-text", "tool-call", "left in the text", info=TOOLS),
    Case("call-broken-json", "tool-call", "not valid JSON", info=TOOLS),
    Case("call-wrong-arguments", "tool-call", "lack `city`", info=TOOLS),
    Case("call-lost-in-stream", "tool-call", "", info=TOOLS),
    Case("call-finish-stop", "tool-call", "finish reason stop", info=TOOLS),
    Case("call-finish-without-call", "tool-call", "contains no call", info=TOOLS),
    Case("answer-in-reasoning", "reasoning", "leaves content empty", info=THINKS),
    Case("think-in-answer", "reasoning", "left in the answer", info=THINKS),
    Case("schema-ignored", "json-schema", "not valid JSON"),
    Case("schema-wrong-type", "json-schema", "not of type integer"),
    Case("no-draft-accepted", "speculation", "no draft token is ever accepted", info=DRAFTS),
    Case("few-drafts-accepted", "speculation", "expected at least", info=DRAFTS),
    Case("too-many-accepted", "speculation", "more than the configuration", info=DRAFTS),
    Case("all-drafts-accepted", "speculation", "practically every draft", info=DRAFTS),
    Case("speculation-silently-off", "speculation", "silently off", info=DRAFTS),
    Case("loop-word", "speculation", "degenerate", info=DRAFTS),
    Case("adapter-ignored", "adapters", "not applied", info=ADAPTED),
    Case("accepts-too-long", "context-edge", "not rejected"),
    Case("abort-leaks", "abort", "still running"),
    Case("needle-lost", "needle", "0 of 4", suite="full"),
    Case("arithmetic-worse", "accuracy-word-problems", "worse"),
    Case("answers-empty-sometimes", "accuracy-word-problems", "are empty"),
    Case("letters-random", "accuracy-general-knowledge", "worse"),
    Case("greedy-moved", "greedy-baseline", "differ from the baseline"),
    Case("logprobs-drift", "fingerprint", "KL"),
)


@pytest.fixture(scope="module")
def baseline() -> dict[str, Any]:
    """The validation of a healthy server with every feature, in its stored form."""
    validation, _ = run(suite="full", info=EVERYTHING)
    stored: dict[str, Any] = json.loads(json.dumps(as_dict(validation)))
    return stored


def named(validation: Validation, case: Case) -> list[Verdict]:
    probes = case.probe.split("|")
    return [
        item
        for item in validation.verdicts
        if item.id in probes and item.outcome is Outcome.FAIL and case.message in item.message
    ]


def test_at_least_thirty_faults_are_injected() -> None:
    assert len({case.fault for case in (*SMOKE, *DEEP)}) >= 60


@pytest.mark.parametrize("case", SMOKE, ids=str)
def test_the_right_probe_of_smoke_reports_the_fault(case: Case) -> None:
    validation, _ = run(case.fault, expect=case.expect)
    assert named(validation, case), [f"{item.id} {item.outcome}: {item.message}" for item in validation.verdicts]
    assert validation.outcome is Outcome.FAIL
    assert validation.level in (Level.ALIVE, Level.READY)


@pytest.mark.slow
@pytest.mark.parametrize("case", DEEP, ids=str)
def test_the_right_probe_of_deeper_suites_reports_the_fault(case: Case, baseline: dict[str, Any]) -> None:
    suite = "standard" if case.suite == "smoke" else case.suite
    expect = {**case.expect, "skip": [probe for probe in SLOW if probe not in case.probe]}
    validation, _ = run(case.fault, suite=suite, info=case.info, expect=expect, baseline=baseline)
    assert named(validation, case), [f"{item.id} {item.outcome}: {item.message}" for item in validation.verdicts]


def test_a_healthy_server_raises_no_alarm_in_fifty_smoke_runs() -> None:
    alarms = []
    with serving() as (port, _):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        for _ in range(50):
            validation = run_suite(subject_at(endpoint), requested(), SystemClock())
            alarms += [item for item in validation.verdicts if item.outcome not in (Outcome.PASS, Outcome.SKIP)]
        endpoint.close()
    assert alarms == []


@pytest.mark.slow
def test_a_healthy_server_with_every_feature_raises_no_alarm_in_full_runs(baseline: dict[str, Any]) -> None:
    for _ in range(2):
        validation, _ = run(suite="full", info=EVERYTHING, baseline=baseline)
        outcomes = {item.id: item.outcome for item in validation.verdicts}
        # The machine may be busier now than for the baseline; the tests of the probe itself judge speed.
        del outcomes["speed"]
        assert set(outcomes.values()) <= {Outcome.PASS, Outcome.SKIP}
        assert {name for name, outcome in outcomes.items() if outcome is Outcome.SKIP} <= UNSHOWN
