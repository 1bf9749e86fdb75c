"""Acceptance is read from every release's meta_info and judged against what the configuration allows."""

from __future__ import annotations

from typing import Any

import pytest

from checks.after.probes.acceptance import judge, largest_length, per_position, read_acceptance, read_reported
from checks.after.probes.context import Baseline, Context, Server, parse_server
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Measured
from checks.after.probes.expectations import parse_expect
from checks.vocabulary import Outcome, Verdict

PROBE = Probe(id="speculation", title="", why="", kind="speculation", level="good-enough", suites=("full",))
WORDS = "the old harbour wakes slowly while boats come home with fish and gulls cry over every roof of this town"
SERVER = parse_server({"speculative_algorithm": "EAGLE", "speculative_num_steps": 3, "speculative_num_draft_tokens": 4})


def answers(steps: int, tokens: int = 97, text: str = WORDS, count: int = 4) -> list[Answer]:
    meta = {"spec_verify_ct": steps, "completion_tokens": tokens}
    return [Answer(path="/generate", status=200, text=text, finish="length", meta=meta) for _ in range(count)]


def judged(found: list[Answer], server: Server = SERVER, before: tuple[float, ...] = (), **expect: Any) -> Verdict:
    baseline = Baseline(samples={"speculation": {"accept_length": before}}) if before else None
    result = judge(PROBE, Context(server=server, expect=parse_expect(expect), baseline=baseline), found)
    return result.verdict if isinstance(result, Measured) else result


@pytest.mark.parametrize(
    "meta",
    [
        {"spec_verify_ct": 40, "completion_tokens": 101},  # 0.4.10 to 0.5.3: nothing else
        {"spec_verify_ct": 40, "completion_tokens": 101, "spec_accept_length": 2.52, "spec_accept_rate": 0.5},
        {"spec_verify_ct": 40, "completion_tokens": 101, "spec_accept_histogram": [10, 10, 10, 10]},
        {"spec_verify_ct": 40, "completion_tokens": 101, "spec_correct_drafts_histogram": [10, 10, 10, 10]},
    ],
)
def test_the_length_is_the_same_in_every_release(meta: dict[str, Any]) -> None:
    found = read_acceptance(meta)
    assert found is not None
    assert found.length == 2.5


def test_a_request_without_verify_steps_was_not_speculated_on() -> None:
    assert read_acceptance({"completion_tokens": 20}) is None
    assert read_acceptance({"completion_tokens": 20, "spec_verify_ct": 0}) is None


@pytest.mark.parametrize(
    ("info", "most"),
    [
        ({"speculative_num_steps": 3, "speculative_num_draft_tokens": 4}, 4.0),
        ({"speculative_num_steps": 3, "speculative_num_draft_tokens": 16}, 4.0),  # a tree is no deeper than its steps
        ({"speculative_num_draft_tokens": 12}, 12.0),  # NGRAM
        ({}, None),
    ],
)
def test_the_band_ends_where_the_configuration_does(info: dict[str, Any], most: float | None) -> None:
    assert largest_length(parse_server({"speculative_algorithm": "EAGLE", **info})) == most


def test_a_usual_acceptance_passes_with_its_figures() -> None:
    verdict = judged(answers(steps=38))
    assert verdict.outcome is Outcome.PASS
    assert verdict.figures["accept_length"] == pytest.approx(2.526, abs=1e-3)


def test_no_accepted_draft_is_named_as_such() -> None:
    verdict = judged(answers(steps=96))
    assert verdict.outcome is Outcome.FAIL
    assert "no draft token is ever accepted" in verdict.message


def test_the_first_token_is_not_counted_as_accepted() -> None:
    # 97 tokens in 96 steps are 1.01 by the engine's own division; one came from the prefill
    assert judged(answers(steps=96)).figures["accept_length"] == 1.0


def test_an_acceptance_below_the_wish_fails() -> None:
    assert judged(answers(steps=80), acceptance={"at_least": 1.8}).outcome is Outcome.FAIL


def test_more_than_the_configuration_allows_fails() -> None:
    assert "more than the configuration allows" in judged(answers(steps=19)).message


def test_practically_every_draft_accepted_is_suspicious() -> None:
    assert "practically every draft token" in judged(answers(steps=24)).message


def test_acceptance_on_looping_text_is_worthless_however_usual_it_looks() -> None:
    verdict = judged(answers(steps=38, text="the lamp is on and " * 20))
    assert verdict.outcome is Outcome.FAIL
    assert "degenerate" in verdict.message


def test_speculation_that_is_configured_and_never_happens_is_named() -> None:
    plain = [Answer(path="/generate", status=200, text=WORDS, meta={"completion_tokens": 97})]
    assert "silently off" in judged(plain).message


def test_a_clear_drop_against_the_baseline_fails() -> None:
    assert judged(answers(steps=38), before=(3.4, 3.3, 3.5)).outcome is Outcome.FAIL
    assert judged(answers(steps=38), before=(2.6, 2.4, 2.5)).outcome is Outcome.PASS


def test_acceptance_by_position_falls() -> None:
    found = read_acceptance({"spec_verify_ct": 10, "completion_tokens": 20, "spec_accept_histogram": [2, 3, 4, 1]})
    assert found is not None
    assert per_position([found]) == (0.8, 0.5, 0.1)


METRICS = """# TYPE sglang:spec_accept_length gauge
sglang:spec_accept_length{engine_type="unified",model_name="a {b}",tp_rank="0"} 2.4
sglang:spec_accept_length{engine_type="unified",model_name="a {b}",tp_rank="1"} 0.0
sglang:spec_accept_rate{engine_type="unified",model_name="a {b}",tp_rank="0"} 4.7e-01
sglang:spec_accept_length_of_something_else 9.0
"""


def test_the_server_s_own_average_and_gauges_are_read() -> None:
    states = {"internal_states": [{"avg_spec_accept_length": 2.5}, {"avg_spec_accept_length": 2.7}, {}]}
    reported = read_reported(
        Answer(path="", status=200, body=states), Answer(path="/metrics", status=200, text=METRICS)
    )
    assert reported == {"server_accept_length": 2.6, "metrics_accept_length": 2.4, "metrics_accept_rate": 0.47}


def test_a_server_without_metrics_tells_what_it_can() -> None:
    assert read_reported(Answer(path="", status=404), Answer(path="/metrics", status=404, text="{}")) == {}


@pytest.mark.parametrize(
    ("reported", "outcome"),
    [({"server_accept_length": 2.4}, Outcome.PASS), ({"metrics_accept_length": 1.0}, Outcome.FAIL), ({}, Outcome.FAIL)],
)
def test_where_replies_lack_counts_the_server_s_average_is_judged(reported: dict[str, float], outcome: Outcome) -> None:
    plain = [Answer(path="/generate", status=200, text=WORDS, meta={"completion_tokens": 97})]
    result = judge(PROBE, Context(server=SERVER), plain, reported)
    assert (result.verdict if isinstance(result, Measured) else result).outcome is outcome
