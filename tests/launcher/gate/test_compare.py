"""New compared with old: better, same or worse, and inconclusive if the measurements cannot decide."""

from __future__ import annotations

from typing import Any

import pytest

from launcher.gate.compare import compare, overall, pooled


def validation(**samples: list[float]) -> dict[str, Any]:
    return {"verdicts": [], "samples": {"speed": samples}}


def verdicts(old: dict[str, Any], new: dict[str, Any], margin: float = 0.05) -> dict[str, str]:
    return {item.name: item.verdict for item in compare(old, new, margin)}


STEADY = [100.0, 100.4, 99.7, 100.1, 99.9]


@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        (STEADY, "same"),
        ([value * 1.2 for value in STEADY], "better"),
        ([value * 0.8 for value in STEADY], "worse"),
        ([value * 0.97 for value in STEADY], "same"),
        ([60.0, 140.0, 95.0, 130.0, 70.0], "inconclusive"),
        ([100.0], "inconclusive"),
    ],
)
def test_decode_rate(now: list[float], verdict: str) -> None:
    assert verdicts(validation(decode=STEADY), validation(decode=now)) == {"speed decode": verdict}


def test_a_longer_time_to_first_token_is_worse() -> None:
    fast, slow = [0.1, 0.101, 0.099], [0.2, 0.201, 0.199]
    assert verdicts(validation(first=fast), validation(first=slow)) == {"speed first token": "worse"}
    assert verdicts(validation(first=slow), validation(first=fast)) == {"speed first token": "better"}


def test_accuracy_is_compared_question_by_question() -> None:
    def answers(right: int, of: int = 400) -> dict[str, Any]:
        return {"samples": {"accuracy-x": {"right": [1.0] * right + [0.0] * (of - right)}}}

    assert verdicts(answers(360), answers(358)) == {"accuracy-x": "same"}
    assert verdicts(answers(360), answers(280)) == {"accuracy-x": "worse"}
    assert verdicts(answers(280), answers(360)) == {"accuracy-x": "better"}
    assert verdicts(answers(18, 20), answers(16, 20)) == {"accuracy-x": "inconclusive"}


def test_a_probe_that_starts_to_fail_is_worse_and_one_that_fails_on_both_sides_is_inconclusive() -> None:
    def probe(outcome: str) -> dict[str, Any]:
        return {"verdicts": [{"id": "prose", "outcome": outcome, "message": "!!!!"}], "samples": {}}

    assert verdicts(probe("pass"), probe("fail")) == {"prose": "worse"}
    assert verdicts(probe("fail"), probe("pass")) == {"prose": "better"}
    assert verdicts(probe("fail"), probe("fail")) == {"prose": "inconclusive"}
    assert verdicts(probe("pass"), probe("error")) == {"prose": "inconclusive"}


def test_one_loss_outweighs_a_gain_and_no_comparison_is_inconclusive() -> None:
    old = validation(decode=STEADY, throughput_4=STEADY)
    new = validation(decode=[value * 1.3 for value in STEADY], throughput_4=[value * 0.7 for value in STEADY])
    assert overall(compare(old, new, 0.05)) == "worse"
    assert overall(compare({}, new, 0.05)) == "inconclusive"


def test_rounds_are_pooled_with_the_worst_verdict() -> None:
    first = {"verdicts": [{"id": "prose", "outcome": "pass"}], "samples": {"speed": {"decode": [1.0]}}}
    second = {"verdicts": [{"id": "prose", "outcome": "fail"}], "samples": {"speed": {"decode": [2.0]}}}
    merged = pooled([first, second])
    assert merged["verdicts"] == [{"id": "prose", "outcome": "fail"}]
    assert merged["samples"] == {"speed": {"decode": [1.0, 2.0]}}


def test_measurements_of_zero_are_inconclusive() -> None:
    assert verdicts(validation(decode=[0.0, 0.0]), validation(decode=STEADY)) == {"speed decode": "inconclusive"}
