"""Validation against a real HTTP server: every fault is named by the right probe, none where there is none."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from checks.model import Evidence, Match, Outcome, Role, Verdict
from checks.probe_context import ExpectError
from checks.probes import of_suite
from checks.validation import Level, Validation, as_dict
from launcher.clock import SystemClock
from launcher.endpoint import Endpoint
from launcher.errors import UsageError
from launcher.flows.validate import validate
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


@dataclass(frozen=True)
class Case:
    """A fault and the probe that must name it; `message` is part of what it must say."""

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
    Case("half-closed", "prose", "broke off"),
    Case("not-json", "prose", "no JSON"),
    Case("stuck-stream", "stream-equals-plain", "no answer in time", expect={"timeout": 0.7}),
    Case("slow-drip", "stream-equals-plain", "drips", expect={"speed": {"floor": 20}}),
    Case("stream-error", "stream-equals-plain", "illegal memory access"),
    Case("stream-cut", "stream-equals-plain", "without a finish reason"),
    Case("stream-no-finish", "stream-equals-plain", "finish reason none"),
    Case("stream-differs", "stream-equals-plain", "part after"),
    Case("bangs", "prose", "'!'"),
    Case("bangs", "greedy-repeat", "token id 0"),
    Case("bangs-as-text", "prose", "'!'"),
    Case("loop-word", "prose", "true"),
    Case("loop-sentence", "prose", "repeated"),
    Case("one-character", "prose", "'+'"),
    Case("empty", "prose", "no text at all"),
    Case("whitespace", "prose", "blank"),
    Case("replacement-characters", "prose", "U+FFFD"),
    Case("mojibake", "prose", "Latin-1"),
    Case("wrong-script", "prose", "Cjk"),
    Case("mixed-scripts", "prose", "mixed"),
    Case("word-salad", "prose", "no English"),
    Case("undecoded-tokens", "prose", "vocabulary glyphs"),
    Case("special-tokens", "known-answer", "<|im_end|>"),
    Case("wrong-answer", "known-answer", "wrong"),
    Case("never-stops", "known-answer", "no answer ends by itself"),
    Case("nondeterministic", "greedy-repeat", "part after"),
    Case("nan-logprobs", "logprobs", "NaN"),
    Case("nan-literal", "logprobs", "NaN"),
    Case("flat-logprobs", "logprobs", "-11.93"),
    Case("random-weights", "logprobs", "surprises the model"),
    Case("drops-logprobs", "logprobs", "no log-probabilities"),
    Case("ignores-max-tokens", "limits", "17 tokens"),
    Case("ignores-stop", "limits", "is ignored"),
    Case("wrong-finish", "limits", "finish reason stop"),
    Case("wrong-count", "limits", "15 tokens"),
)
DEEP = (
    Case("loop-paragraph", "long-prompt", "period 4"),
    Case("long-prompt-garbage", "long-prompt", "repeated"),
    Case("cache-hit-garbage", "cache-rerun", "another answer"),
    Case("batch-garbage", "batch-sweep", "batches of 3"),
    Case("batch-garbage", "concurrency-agreement", "none alone"),
    Case("batch-of-5-garbage", "batch-sweep", "batches of 5 "),
    Case("state-leaks", "concurrency-agreement|batch-sweep", ""),
    Case("call-in-text", "tool-call", "left in the text", info=TOOLS),
    Case("call-broken-json", "tool-call", "no JSON", info=TOOLS),
    Case("call-wrong-arguments", "tool-call", "lack `city`", info=TOOLS),
    Case("call-lost-in-stream", "tool-call", "", info=TOOLS),
    Case("call-finish-stop", "tool-call", "finish reason stop", info=TOOLS),
    Case("call-finish-without-call", "tool-call", "without a call", info=TOOLS),
    Case("answer-in-reasoning", "reasoning", "inside reasoning_content", info=THINKS),
    Case("think-in-answer", "reasoning", "left in the answer", info=THINKS),
    Case("schema-ignored", "json-schema", "no JSON"),
    Case("schema-wrong-type", "json-schema", "no integer"),
    Case("no-draft-accepted", "speculation", "not one draft", info=DRAFTS),
    Case("few-drafts-accepted", "speculation", "expected at least", info=DRAFTS),
    Case("too-many-accepted", "speculation", "more than the configuration", info=DRAFTS),
    Case("all-drafts-accepted", "speculation", "practically every draft", info=DRAFTS),
    Case("speculation-silently-off", "speculation", "silently off", info=DRAFTS),
    Case("loop-word", "speculation", "degenerate", info=DRAFTS),
    Case("adapter-ignored", "adapters", "not applied", info=ADAPTED),
    Case("accepts-too-long", "context-edge", "not refused"),
    Case("abort-leaks", "abort", "still run"),
    Case("needle-lost", "needle", "0 of 4", suite="full"),
    Case("arithmetic-worse", "accuracy-word-problems", "worse"),
    Case("answers-empty-sometimes", "accuracy-word-problems", "are empty"),
    Case("letters-random", "accuracy-general-knowledge", "worse"),
    Case("greedy-moved", "greedy-baseline", "differ from the baseline"),
    Case("logprobs-drift", "fingerprint", "KL"),
)


def run(
    *faults: str, suite: str = "smoke", info: Mapping[str, Any] | None = None, **more: Any
) -> tuple[Validation, State]:
    """One validation of a stand-in with these faults."""
    expect = {**LENIENT, **more.pop("expect", {})}
    with serving(*faults, **(info or {})) as (port, state):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        found = validate(endpoint, suite=suite, expect=expect, server_info={}, clock=SystemClock(), **more)
        endpoint.close()
    return found, state


@pytest.fixture(scope="module")
def baseline() -> dict[str, Any]:
    """A healthy run of everything, as it would be stored."""
    found, _ = run(suite="full", info=EVERYTHING)
    stored: dict[str, Any] = json.loads(json.dumps(as_dict(found)))
    return stored


def named(found: Validation, case: Case) -> list[Verdict]:
    wanted = case.probe.split("|")
    return [
        item
        for item in found.verdicts
        if item.id in wanted and item.outcome is Outcome.FAIL and case.message in item.message
    ]


def test_at_least_thirty_faults_are_injected() -> None:
    assert len({case.fault for case in (*SMOKE, *DEEP)}) >= 60


@pytest.mark.parametrize("case", SMOKE, ids=str)
def test_smoke_names_the_fault_by_the_right_probe(case: Case) -> None:
    found, _ = run(case.fault, expect=case.expect)
    assert named(found, case), [f"{item.id} {item.outcome}: {item.message}" for item in found.verdicts]
    assert found.outcome is Outcome.FAIL
    assert found.level in (Level.ALIVE, Level.READY)


@pytest.mark.slow
@pytest.mark.parametrize("case", DEEP, ids=str)
def test_deeper_suites_name_the_fault_by_the_right_probe(case: Case, baseline: dict[str, Any]) -> None:
    suite = "standard" if case.suite == "smoke" else case.suite
    expect = {**case.expect, "skip": [probe for probe in SLOW if probe not in case.probe]}
    found, _ = run(case.fault, suite=suite, info=case.info, expect=expect, baseline=baseline)
    assert named(found, case), [f"{item.id} {item.outcome}: {item.message}" for item in found.verdicts]


def test_a_healthy_server_raises_no_alarm_in_fifty_smoke_runs() -> None:
    alarms = []
    with serving() as (port, _):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        for _ in range(50):
            found = validate(endpoint, suite="smoke", expect=LENIENT, server_info={}, clock=SystemClock())
            alarms += [item for item in found.verdicts if item.outcome is not Outcome.PASS]
        endpoint.close()
    assert alarms == []


@pytest.mark.slow
def test_a_healthy_server_with_every_feature_raises_no_alarm_in_ten_full_runs(baseline: dict[str, Any]) -> None:
    for _ in range(10):
        found, _ = run(suite="full", info=EVERYTHING, baseline=baseline)
        outcomes = {item.id: item.outcome for item in found.verdicts}
        # how fast this machine is at this moment is no matter of a test
        assert outcomes.pop("speed") in (Outcome.PASS, Outcome.INCONCLUSIVE)
        assert set(outcomes.values()) == {Outcome.PASS}


@pytest.mark.parametrize("allowed", [1, 3, 8])
def test_no_more_requests_are_in_flight_than_the_server_decodes_together(allowed: int) -> None:
    # the stand-in notices a client that hung up only at its next write: aborted requests count too long here
    _, state = run(suite="standard", info={"max_running_requests": allowed}, expect={"skip": ["abort"]})
    assert state.most_running <= allowed


def test_accuracy_questions_fill_what_the_server_allows() -> None:
    # An answer takes 80 ms of the stand-in: a client that fills its places has 8 of them open most of the time.
    with serving(delay=0.02) as (port, state):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        skip = [probe.id for probe in of_suite("standard") if not probe.id.startswith("accuracy-general")]
        expect = {**LENIENT, "skip": skip}
        validate(endpoint, suite="standard", expect=expect, server_info={}, clock=SystemClock())
        endpoint.close()
    assert state.most_running == 8


def test_nobody_there_is_not_alive() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", unused.getsockname()[1])
        found = validate(endpoint, suite="smoke", expect={}, server_info={}, clock=SystemClock())
        endpoint.close()
    assert found.level is Level.NONE
    assert found.outcome is Outcome.FAIL
    assert all("nobody answers" in item.message for item in found.verdicts)


def test_a_base_model_without_chat_template_passes() -> None:
    found, _ = run("no-chat-template")
    assert found.level is Level.CORRECT


def test_a_method_that_cannot_return_log_probabilities_is_skipped_not_failed() -> None:
    found, _ = run("no-logprob-support")
    assert {item.id: item.outcome for item in found.verdicts}["logprobs"] is Outcome.SKIP
    assert found.outcome is Outcome.PASS


def test_an_embedding_server_is_only_asked_whether_it_is_ready() -> None:
    found, state = run(info={"is_embedding": True})
    assert found.level is Level.READY
    assert not any(path.startswith("/v1/chat") for path in state.paths)


def test_a_probe_that_the_profile_skips_is_not_run_and_no_pass() -> None:
    found, _ = run(expect={"skip": ["prose"]})
    assert {item.id: item.outcome for item in found.verdicts}["prose"] is Outcome.SKIP


def test_a_broken_check_is_an_error_and_not_the_servers_fault() -> None:
    # questions without `accept` are our side's mistake
    found, _ = run(expect={"known_answer": [{"prompt": "x"}]})
    broken = next(item for item in found.verdicts if item.id == "known-answer")
    assert broken.outcome is Outcome.ERROR
    assert "accept" in broken.evidence[0].text
    assert found.outcome is Outcome.ERROR


def test_an_open_warning_of_the_log_keeps_the_server_at_ready() -> None:
    warning = Match(
        id="odd-scales", role=Role.LEDGER, title="Odd", evidence=(Evidence(text="scale_fmt is odd", line=9),)
    )
    found, _ = run(ledger=[warning])
    assert found.level is Level.READY
    assert "open warning" in found.summary
    accepted = {"accept_warnings": {"odd-scales": {"reason": "measured in May", "until": "2999-01-01"}}}
    found, _ = run(ledger=[warning], expect=accepted)
    assert found.level is Level.CORRECT
    assert found.warnings[0].state == "accepted"


def test_progress_tells_each_verdict_once() -> None:
    told: list[str] = []
    found, _ = run(progress=lambda verdict: told.append(verdict.id))
    assert sorted(told) == sorted(item.id for item in found.verdicts) == sorted(probe.id for probe in of_suite("smoke"))


def test_the_result_is_plain_json() -> None:
    found, _ = run(suite="standard", info=EVERYTHING)
    data = json.loads(json.dumps(as_dict(found)))
    assert data["level"] == "correct"
    assert data["engine"] == "0.5.23"
    assert len(data["samples"]["accuracy-word-problems"]["right"]) == 60
    assert {item["outcome"] for item in data["verdicts"]} <= set(Outcome)


def test_unknown_suites_and_expectations_are_refused_before_anything_is_sent() -> None:
    with serving() as (port, state):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        with pytest.raises(UsageError) as error:
            validate(endpoint, suite="smok", expect={}, server_info={"version": "1"}, clock=SystemClock())
        assert "smoke" in error.value.hint
        with pytest.raises(ExpectError):
            validate(endpoint, suite="smoke", expect={"sped": {}}, server_info={"version": "1"}, clock=SystemClock())
        endpoint.close()
    assert state.paths == []
