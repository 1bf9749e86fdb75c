"""Validation against a real HTTP server: limits, skips, warnings, soaking, and what becomes of broken checks."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime

import pytest

from checks.model import Evidence, Match, Outcome, Role
from checks.probe_context import ExpectError
from checks.probes import of_suite
from checks.validation import Level, Validation, as_dict
from launcher.clock import FakeClock, SystemClock
from launcher.endpoint import Endpoint
from launcher.errors import UsageError
from launcher.flows.validate import soak, validate
from launcher.transport.local import LocalTransport
from tests.support.fake_server import serving
from tests.support.validating import EVERYTHING, LENIENT, run


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


def test_soaking_goes_on_for_its_time_while_all_is_well() -> None:
    clock, rounds = FakeClock(datetime(2026, 11, 29, tzinfo=UTC)), []
    with serving() as (port, _):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        found = soak(endpoint, seconds=600, every=60, expect=LENIENT, clock=clock, progress=rounds.append)
        endpoint.close()
    assert len(rounds) == 10
    assert found.outcome is Outcome.PASS


def test_soaking_ends_with_the_first_failure() -> None:
    clock, rounds = FakeClock(datetime(2026, 11, 29, tzinfo=UTC)), []

    def watch(found: Validation) -> None:
        rounds.append(found)
        state.faults = frozenset({"bangs"}) if len(rounds) == 3 else state.faults

    with serving() as (port, state):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        found = soak(endpoint, seconds=600, every=60, expect=LENIENT, clock=clock, progress=watch)
        endpoint.close()
    assert len(rounds) == 4
    assert found.outcome is Outcome.FAIL


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
