"""What `expect` may hold becomes a typed record, or is refused with the key at fault."""

from __future__ import annotations

import pytest

from checks.after.probes.expectations import ExpectError, duration, parse_expect


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("30s", 30), ("10m", 600), ("1h30m", 5400), ("0.5s", 0.5), (45, 45), ("2d", 172800)],
)
def test_durations(text: object, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "ten minutes", "10 m", "5x", "-3s", "1.2.3s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ExpectError):
        duration(text)


def test_every_value_has_its_type() -> None:
    parsed = parse_expect(
        {
            "suite": "standard", "soak": "1h30m", "deeper": {"gsm8k": {"with": "lm-eval", "n": 3}, "mmlu": None},
            "known-answer": [{"prompt": "1, 2, 3,", "accept": [4, "four"]}], "speed": {"concurrency": [1, 8]},
            "accuracy": {"word-problems": {"at-least": 0.5}},
        }
    )  # fmt: skip
    assert (parsed.suite, parsed.soak, parsed.ready_within) == ("standard", 5400.0, 3600.0)
    assert (parsed.deeper["gsm8k"].program, parsed.deeper["gsm8k"].n, parsed.deeper["mmlu"].n) == ("lm-eval", 3, None)
    assert parsed.known_answer and parsed.known_answer[0].accept == (4, "four")
    assert (parsed.speed.concurrency, parsed.speed.floor) == ((1, 8), 1.0)
    assert parsed.accuracy["word-problems"].at_least == 0.5


def test_no_known_answer_is_not_the_same_as_none_given() -> None:
    assert parse_expect({"known-answer": False}).known_answer is False
    assert parse_expect({}).known_answer == ()


@pytest.mark.parametrize("expect", [{"suite": "smok"}, {"soak": "soon"}, {"sped": {}}, {"deeper": {"x": {"least": 1}}}])
def test_what_is_not_understood_is_refused(expect: dict[str, object]) -> None:
    with pytest.raises(ExpectError):
        parse_expect(expect)
