"""Numbers and answers against a baseline: divergence of rows, greedy answers that part, what is stored."""

from __future__ import annotations

from math import log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.after.probes.context import Baseline, Context, Server
from checks.after.probes.exchange import Answer
from checks.after.probes.expectations import parse_expect
from checks.after.probes.fingerprint import (
    Samples,
    judge_answers,
    judge_rows,
    kl,
    read_rows,
    stored_answers,
    stored_rows,
)
from checks.after.probes.registry import probes, script
from checks.vocabulary import Outcome
from tests.support.driving import drive, said

PASS, FAIL, SKIP, OPEN = Outcome.PASS, Outcome.FAIL, Outcome.SKIP, Outcome.INCONCLUSIVE
ROW = {1: log(0.7), 2: log(0.2)}
NEAR = {1: log(0.69), 2: log(0.21)}
FAR = {1: log(0.2), 2: log(0.7)}
FINGERPRINT, GREEDY = (
    next(item for item in probes() if item.id == name) for name in ("fingerprint", "greedy-baseline")
)
PLAIN = Context(server=Server())


# --- divergence


def test_divergence_is_zero_for_equal_rows_and_grows_with_the_difference() -> None:
    row = {1: -0.2, 2: -2.0, 3: -4.0}
    assert kl(row, row) == pytest.approx(0, abs=1e-12)
    assert kl(row, {1: -0.25, 2: -1.9, 3: -3.9}) < 0.01
    assert kl(row, {1: -1.5, 2: -0.4, 3: -4.0}) > 0.5


def test_divergence_counts_what_is_not_listed_as_one_more_token() -> None:
    expected = 0.7 * log(0.7 / 0.5) + 0.2 * log(0.2 / 0.2) + 0.1 * log(0.1 / 0.3)
    assert kl(ROW, {1: log(0.5), 2: log(0.2)}) == pytest.approx(expected)


def test_a_token_that_is_not_listed_now_gets_the_least_that_is() -> None:
    assert kl(ROW, {7: -0.2, 8: -2.0}) == pytest.approx(kl(ROW, {1: -2.0, 2: -2.0}))
    assert kl(ROW, {7: -0.2, 8: -2.0}) > 0


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=6), st.lists(st.floats(0.01, 1), min_size=2, max_size=6))
def test_divergence_is_never_negative(one: list[float], other: list[float]) -> None:
    def row(weights: list[float]) -> dict[int, float]:
        return {token: log(weight / sum(weights)) for token, weight in enumerate(weights)}

    assert kl(row(one), row(other)) >= 0


@pytest.mark.parametrize(
    ("now", "expect", "outcome"),
    [
        ([ROW] * 12, {}, PASS),
        ([NEAR] * 12, {}, PASS),
        ([FAR] * 12, {}, FAIL),
        ([FAR] * 12, {"fingerprint": {"kl_at_most": 1.0}}, PASS),
        ([NEAR] * 12, {"fingerprint": {"kl_at_most": 0.0001}}, FAIL),
        ([FAR, *[ROW] * 11], {}, OPEN),
    ],
)
def test_divergence_is_judged_by_its_interval(
    now: list[dict[int, float]], expect: dict[str, Any], outcome: Outcome
) -> None:
    verdict = judge_rows(FINGERPRINT, Context(server=Server(), expect=parse_expect(expect)), [ROW] * 12, now)
    assert verdict.outcome is outcome, verdict.message
    assert (verdict.figures["positions"], verdict.figures["lost_tops"]) == (12, 0)


def test_another_number_of_positions_is_another_tokenizer() -> None:
    verdict = judge_rows(FINGERPRINT, PLAIN, [ROW] * 12, [ROW] * 11)
    assert (verdict.outcome, verdict.message) == (
        FAIL, "the text has 12 positions in the baseline, 11 now: the tokenizer differs",
    )  # fmt: skip


def test_a_likeliest_token_that_is_not_even_listed_now_is_lost() -> None:
    verdict = judge_rows(FINGERPRINT, PLAIN, [ROW] * 12, [{2: log(0.9)}, *[ROW] * 11])
    assert verdict.figures["lost_tops"] == 1


def test_rows_without_numbers_are_left_out() -> None:
    items = [None, [[-0.1, 5, None], [None, 6, None]], [], [[float("nan"), 7, None]], [[-0.5, "8", "x"]], "x"]
    assert read_rows(items) == [{5: -0.1}, {8: -0.5}]
    assert read_rows(None) == []


# --- the two scripts


def reply(rows: int, *values: float) -> Answer:
    listed = [None] + [[[value, token, None] for token, value in enumerate(values)]] * rows
    return said("x", meta={"input_top_logprobs": listed})


def samples_of(answers: list[Answer], probe: str) -> tuple[Outcome, Samples]:
    steps = script(FINGERPRINT if probe == "fingerprint" else GREEDY, PLAIN)
    next(steps)
    with pytest.raises(StopIteration) as end:
        steps.send(answers)
    return end.value.value.verdict.outcome, end.value.value.samples


def with_baseline(probe: str, samples: Samples) -> Context:
    return Context(server=Server(running=16), baseline=Baseline(samples={probe: samples}))


def test_a_first_fingerprint_is_recorded_and_a_second_compared_with_it() -> None:
    outcome, samples = samples_of([reply(12, -0.4, -1.6)] * 4, "fingerprint")
    assert outcome is SKIP
    assert stored_rows(samples) == [{0: -0.4, 1: -1.6}] * 48
    same, asked = drive("fingerprint", [[reply(12, -0.4, -1.6)] * 4], with_baseline("fingerprint", samples))
    other, _ = drive("fingerprint", [[reply(12, -1.6, -0.4)] * 4], with_baseline("fingerprint", samples))
    assert (same.outcome, other.outcome) == (PASS, FAIL)
    payload = asked[0].payload or {}
    assert (payload["logprob_start_len"], payload["top_logprobs_num"]) == (0, 8)


@pytest.mark.parametrize(
    ("answer", "outcome", "words"),
    [
        (reply(1, -0.4), SKIP, "returns no top log-probabilities"),
        (said("x"), SKIP, "returns no top log-probabilities"),
        (Answer(path="/generate", status=400, raw="logprob is not supported"), SKIP, "cannot return log-probabilities"),
        (Answer(path="/generate", status=500), FAIL, "HTTP 500"),
    ],
)
def test_a_server_without_top_log_probabilities_has_no_fingerprint(
    answer: Answer, outcome: Outcome, words: str
) -> None:
    verdict, _ = drive("fingerprint", [[answer] * 4])
    assert (verdict.outcome, words in verdict.message) == (outcome, True)


def greedy(*ids: int, logprob: float = -0.1) -> Answer:
    return said("Monday, Tuesday", ids=ids, logprobs=(logprob,) * len(ids))


def test_first_greedy_answers_are_recorded_and_later_ones_compared_with_them() -> None:
    outcome, samples = samples_of([greedy(5, 6)] * 12, "greedy-baseline")
    assert outcome is SKIP
    assert [(answer.ids, answer.logprobs) for answer in stored_answers(samples, 12)] == [((5, 6), (-0.1, -0.1))] * 12
    context = with_baseline("greedy-baseline", samples)
    for parted, expected in ((0, PASS), (1, PASS), (2, OPEN), (3, OPEN), (4, FAIL)):
        answers = [greedy(5, 7)] * parted + [greedy(5, 6)] * (12 - parted)
        verdict, _ = drive("greedy-baseline", [answers], context)
        assert verdict.outcome is expected, verdict.message
        assert verdict.figures["parted"] == parted / 12


def test_answers_that_part_at_a_near_tie_are_equal() -> None:
    before, now = greedy(5, 6, logprob=-0.7), greedy(5, 7, logprob=-0.75)
    assert judge_answers(GREEDY, [before], [now]).outcome is PASS


def test_garbage_fails_without_a_baseline() -> None:
    assert drive("greedy-baseline", [[said("!" * 40)] * 12], Context(server=Server(running=16)))[0].outcome is FAIL


def test_an_empty_baseline_is_none() -> None:
    assert stored_rows({}) == []
    assert [answer.ids for answer in stored_answers({}, 2)] == [(), ()]
