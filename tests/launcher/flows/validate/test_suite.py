"""Validation against a real HTTP server: limits, skips, warnings, and the outcome of a broken check."""

from __future__ import annotations

import json
import socket

import pytest
from msgspec.structs import replace

from checks.after.probes.context import Context, Server
from checks.after.probes.entry import Probe
from checks.after.probes.expectations import ExpectError
from checks.after.probes.registry import of_suite
from checks.after.validation import Level, as_dict, outcome_of
from checks.vocabulary import Evidence, Match, Outcome, Role
from launcher.client.endpoint import Endpoint
from launcher.client.probing.pool import run_probe
from launcher.clock import SystemClock
from launcher.flows.validate.suite import WITHOUT_TEXT, run_suite
from launcher.transport.local import LocalTransport
from tests.support.fake_server import serving
from tests.support.validating import EVERYTHING, LENIENT, SLOW, UNSHOWN, requested, run, subject_at


@pytest.mark.parametrize("allowed", [1, 3, 8])
def test_no_more_requests_are_in_flight_than_the_server_decodes_concurrently(allowed: int) -> None:
    # the stand-in notices a disconnected client only at its next write, so it counts aborted requests for too long
    _, state = run(suite="standard", info={"max_running_requests": allowed}, expect={"skip": ["abort"]})
    assert state.most_running <= allowed


def test_accuracy_questions_use_all_the_concurrency_that_the_server_allows() -> None:
    # The stand-in takes 80 ms per answer: a client that uses all 8 slots has 8 requests open most of the time.
    with serving(delay=0.02) as (port, state):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        skip = [probe.id for probe in of_suite("standard") if not probe.id.startswith("accuracy-general")]
        expect = {**LENIENT, "skip": skip}
        run_suite(subject_at(endpoint), requested({**expect, "suite": "standard"}), SystemClock())
        endpoint.close()
    assert state.most_running == 8


def test_a_server_that_does_not_answer_is_not_alive() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", unused.getsockname()[1])
        validation = run_suite(subject_at(endpoint), requested({}), SystemClock())
        endpoint.close()
    assert validation.level is Level.NONE
    assert validation.outcome is Outcome.FAIL
    assert all("the server did not answer" in item.message for item in validation.verdicts)


def test_a_base_model_without_chat_template_passes() -> None:
    validation, _ = run("no-chat-template")
    assert validation.level is Level.CORRECT


def test_a_method_that_cannot_return_log_probabilities_is_skipped_not_failed() -> None:
    validation, _ = run("no-logprob-support")
    assert {item.id: item.outcome for item in validation.verdicts}["logprobs"] is Outcome.SKIP
    assert validation.outcome is Outcome.PASS


def test_an_embedding_server_is_only_proved_ready() -> None:
    validation, state = run(info={"is_embedding": True})
    assert validation.level is Level.READY
    assert not any(path.startswith("/v1/chat") for path in state.paths)


def test_a_probe_that_the_profile_skips_does_not_run_and_does_not_count_as_passed() -> None:
    validation, _ = run(expect={"skip": ["prose"]})
    assert {item.id: item.outcome for item in validation.verdicts}["prose"] is Outcome.SKIP


def test_a_broken_check_is_an_error_and_not_the_servers_fault() -> None:
    # an entry without its prompt is a mistake on our side
    probe = Probe(id="p", title="", why="", kind="greedy-repeat", level="correct", suites=("smoke",))
    verdict = run_probe(probe, Context(server=Server()), lambda _: [], SystemClock()).verdict
    assert verdict.outcome is Outcome.ERROR
    assert "prompt" in verdict.evidence[0].text
    assert outcome_of([verdict], 0) is Outcome.ERROR


def test_an_unresolved_warning_in_the_log_keeps_the_server_at_ready() -> None:
    warning = Match(
        id="odd-scales", role=Role.LEDGER, title="Odd", evidence=(Evidence(text="scale_fmt is odd", line=9),)
    )
    validation, _ = run(ledger=[warning])
    assert validation.level is Level.READY
    assert "unresolved warning" in validation.summary
    accepted = {"accept_warnings": {"odd-scales": {"reason": "measured in May", "until": "2999-01-01"}}}
    validation, _ = run(ledger=[warning], expect=accepted)
    assert validation.level is Level.CORRECT
    assert validation.warnings[0].state == "accepted"


SCALES = Match(id="fp8-cache-with-default-scales", role=Role.LEDGER, title="FP8 KV", evidence=(Evidence(text="x"),))


def test_a_warning_that_only_the_needle_can_clear_adds_it_to_standard() -> None:
    validation, _ = run(suite="standard", ledger=[SCALES], expect={"skip": list(SLOW)})
    assert {item.id: item.outcome for item in validation.verdicts}["needle"] is Outcome.PASS
    # any of three accuracy probes clears the warning and one is in the suite: the few-shot probe is not needed
    assert "accuracy-word-problems-few-shot" not in {item.id for item in validation.verdicts}


@pytest.mark.parametrize(("suite", "info"), [("smoke", {}), ("standard", {"device": "cpu"})])
def test_smoke_and_a_cpu_do_not_get_the_needle(suite: str, info: dict[str, str]) -> None:
    validation, _ = run(suite=suite, ledger=[SCALES], info=info, expect={"skip": list(SLOW)})
    assert "needle" not in {item.id for item in validation.verdicts}


def test_passing_needle_and_accuracy_probes_clear_the_warning() -> None:
    baseline, _ = run(suite="standard")
    expect = {"skip": ["speed"]}
    validation, _ = run(
        suite="standard", ledger=[SCALES], expect=expect, baseline=json.loads(json.dumps(as_dict(baseline)))
    )
    assert [item.state for item in validation.warnings] == ["cleared"]


def test_a_profile_adds_probes_to_its_suite() -> None:
    validation, _ = run(expect={"also": ["json-schema"]})
    assert {item.id: item.outcome for item in validation.verdicts}["json-schema"] is Outcome.PASS
    with pytest.raises(ExpectError, match="json-schema"):
        run(expect={"also": ["json-shema"]})


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["standard", "full"])
def test_a_server_with_every_feature_is_proved_good_enough(suite: str) -> None:
    first, _ = run(
        suite=suite, info={**EVERYTHING, "enable_metrics": True}, expect={"speed": {"margin": 5, "floor": 0}}
    )
    stored = json.loads(json.dumps(as_dict(first)))
    # a margin of 500 %: the present speed of this machine must not decide a test
    expect = {"speed": {"margin": 5, "floor": 0, "repeats": 3}}
    validation, _ = run(suite=suite, info={**EVERYTHING, "enable_metrics": True}, expect=expect, baseline=stored)
    # the stand-in sees no pictures, and its first token is nearly certain
    assert {item.id for item in validation.verdicts if item.outcome is not Outcome.PASS} <= UNSHOWN
    assert validation.level is Level.GOOD_ENOUGH
    expected = {"tool-call", "reasoning", "adapters", "speculation", "accuracy-word-problems", "speed"}
    assert expected <= {item.id for item in validation.verdicts}
    figures = next(item.figures for item in validation.verdicts if item.id == "speculation")
    assert figures["metrics_accept_length"] == 2.5


def test_the_speed_of_a_live_baseline_is_measured_in_alternation() -> None:
    with serving(max_running_requests=3) as (port, state):
        other = Endpoint(LocalTransport(), "127.0.0.1", port)
        skip = [probe.id for probe in of_suite("standard") if probe.id != "speed"]
        validation, server_state = run(suite="standard", expect={"skip": skip}, live_baseline=other)
        other.close()
    speed = next(item for item in validation.verdicts if item.id == "speed")
    assert "decode_ratio" in speed.figures
    # the concurrency of the smaller of the two servers; whether it is reached depends on the speed of this machine
    assert {name for name in speed.figures if name.startswith("throughput") and name[-1].isdigit()} == {"throughput_3"}
    assert state.most_running <= 3
    assert state.paths.count("/generate") == server_state.paths.count("/generate") > 10


def test_each_verdict_is_reported_once() -> None:
    ids: list[str] = []
    validation, _ = run(inform=lambda verdict: ids.append(verdict.id))
    assert (
        sorted(ids)
        == sorted(item.id for item in validation.verdicts)
        == sorted(probe.id for probe in of_suite("smoke") if probe.kind not in WITHOUT_TEXT)
    )


def test_the_result_is_plain_json() -> None:
    validation, _ = run(suite="standard", info=EVERYTHING)
    data = json.loads(json.dumps(as_dict(validation)))
    assert data["level"] == "correct"
    assert data["engine"] == "0.5.23"
    assert len(data["samples"]["accuracy-word-problems"]["right"]) == 60
    assert {item["outcome"] for item in data["verdicts"]} <= set(Outcome)


def test_an_unknown_probe_is_refused_before_anything_is_sent() -> None:
    with serving() as (port, state):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        odd = replace(requested(), expect=replace(requested().expect, also=("json-shema",)))
        with pytest.raises(ExpectError, match="json-schema"):
            run_suite(subject_at(endpoint, info={"version": "1", "is_embedding": False}), odd, SystemClock())
        endpoint.close()
    assert state.paths == []
