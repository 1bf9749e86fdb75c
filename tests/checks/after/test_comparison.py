"""Two stored validations are compared by the same judgements that probes use against a baseline."""

from __future__ import annotations

from typing import Any

from checks.after.comparison import compare
from checks.after.probes.expectations import parse_expect
from checks.vocabulary import Outcome

QUIET = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2]
ROWS = {"sizes": [2.0] * 10, "ids": [1.0, 2.0] * 10, "logprobs": [-0.2, -1.8] * 10}
SHIFTED = {**ROWS, "logprobs": [-1.2, -0.4] * 10}


def document(*, suite: str = "standard", engine: str = "0.5.22", **samples: dict[str, list[float]]) -> dict[str, Any]:
    named = {name.replace("_", "-"): parts for name, parts in samples.items()}
    verdicts = [{"id": name, "outcome": "pass", "message": "", "figures": {}} for name in named]
    return {"suite": suite, "engine": engine, "model": "smol", "verdicts": verdicts, "samples": named}


def outcomes(before: dict[str, Any], now: dict[str, Any], **expect: Any) -> dict[str, Outcome]:
    return {item.id: item.outcome for item in compare(before, now, parse_expect(expect)).verdicts}


def test_speed_is_compared_with_its_interval() -> None:
    base = document(speed={"decode": QUIET, "first": [0.2] * 6})
    slow = document(speed={"decode": [value * 0.8 for value in QUIET], "first": [0.2] * 6})
    assert outcomes(base, base) == {"speed": Outcome.PASS}
    assert outcomes(base, slow) == {"speed": Outcome.FAIL}
    assert outcomes(base, slow, speed={"margin": 0.3}) == {"speed": Outcome.PASS}


def test_accuracy_is_compared_question_by_question() -> None:
    right = {"right": [1.0] * 57 + [0.0] * 3}
    worse = {"right": [0.0] * 12 + [1.0] * 45 + [0.0] * 3}
    base = document(accuracy_word_problems=right)
    assert outcomes(base, document(accuracy_word_problems=worse)) == {"accuracy-word-problems": Outcome.FAIL}
    wide = {"word-problems": {"margin": 0.4}}
    assert outcomes(base, document(accuracy_word_problems=worse), accuracy=wide) == {
        "accuracy-word-problems": Outcome.PASS
    }


def test_acceptance_fingerprint_and_greedy_answers_are_compared() -> None:
    answers = {"ids_0": [5.0, 6.0, 7.0], "logprobs_0": [-0.01, -0.01, -0.01]}
    moved = {"ids_0": [5.0, 9.0, 9.0], "logprobs_0": [-0.01, -0.01, -0.01]}
    base = document(speculation={"accept_length": [2.6, 2.7]}, fingerprint=ROWS, greedy_baseline=answers)
    assert set(outcomes(base, base).values()) == {Outcome.PASS}
    now = document(speculation={"accept_length": [1.6, 1.7]}, fingerprint=SHIFTED, greedy_baseline=moved)
    assert outcomes(base, now) == {
        "speculation": Outcome.FAIL,
        "fingerprint": Outcome.FAIL,
        "greedy-baseline": Outcome.FAIL,
    }


def test_a_pass_that_is_none_any_more_is_news() -> None:
    base, now = document(), document()
    base["verdicts"] = [{"id": "prose", "outcome": "pass"}, {"id": "limits", "outcome": "pass"}]
    now["verdicts"] = [{"id": "prose", "outcome": "fail"}, {"id": "limits", "outcome": "pass"}]
    found = compare(base, now)
    assert [(item.id, item.outcome, item.message) for item in found.verdicts] == [
        ("prose", Outcome.FAIL, "was pass, is fail")
    ]
    assert found.outcome is Outcome.FAIL


def test_what_makes_the_comparison_less_than_it_seems_is_noted() -> None:
    found = compare(document(suite="smoke"), document(engine="0.5.23"))
    assert found.notes == ("different engine releases: 0.5.22, then 0.5.23", "different suites: smoke, then standard")
    assert found.outcome is Outcome.SKIP
