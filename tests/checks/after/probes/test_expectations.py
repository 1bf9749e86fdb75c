"""What `expect` of a profile may hold: each kind of value, and each complaint with the key it is about."""

from __future__ import annotations

from typing import Any

import pytest

from checks.after.probes.expectations import KEYS, ExpectError, Key, Kind, duration, fits, parse_expect

GOOD: dict[Kind, list[Any]] = {
    Kind.TEXT: ["a"],
    Kind.FLAG: [True, False],
    Kind.COUNT: [1, 7, 2.0],
    Kind.NUMBER: [0, 0.5, 100],
    Kind.SHARE: [0, 0.5, 1],
    Kind.COUNTS: [[], [1, 2], (4,)],
    Kind.TEXTS: [[], ["a", "b"]],
    Kind.DURATION: ["30s", "1h30m", 60],
    Kind.QUESTIONS: [False, [{"prompt": "1, 2,", "accept": ["3"]}]],
    Kind.WORD: ["smoke"],
}
BAD: dict[Kind, list[Any]] = {
    Kind.TEXT: ["", 1, True, ["a"]],
    Kind.FLAG: ["true", 1, 0, "no"],
    Kind.COUNT: [0, -1, 1.5, "1", True],
    Kind.NUMBER: [-0.1, "1", True],
    Kind.SHARE: [1.1, -0.1, "0.5", True],
    Kind.COUNTS: [1, [0], [1.5], ["1"], "12"],
    Kind.TEXTS: ["a", [1], {"a": 1}],
    Kind.DURATION: [-1, True, ["30s"]],
    Kind.QUESTIONS: [True, [], {}, [{"prompt": "x"}], [{"prompt": "x", "accept": []}],
                     [{"prompt": "x", "accept": "3"}], [{"prompt": "x", "accept": ["3"], "why": "w"}], ["x"]],
    Kind.WORD: ["huge", 1, None],
}  # fmt: skip


@pytest.mark.parametrize("kind", GOOD)
def test_a_value_is_taken_for_its_kind_and_no_other_is(kind: Kind) -> None:
    key = Key(kind, "", words=("smoke", "full"))
    assert [value for value in GOOD[kind] if not fits(value, key)] == []
    assert [value for value in BAD[kind] if fits(value, key)] == []


def test_every_kind_of_a_single_value_is_tried() -> None:
    assert {*GOOD} == {*BAD} == {*Kind} - {Kind.PARTS, Kind.NAMED}


@pytest.mark.parametrize(
    ("expect", "parsed"),
    [
        ({}, {}),
        ({"ready-within": 60, "known_answer": False}, {"ready_within": 60, "known_answer": False}),
        ({"chat": None}, {}),
        ({"speed": {"decode-at-least": 10, "margin": None}}, {"speed": {"decode_at_least": 10}}),
        ({"accuracy": {"general-knowledge": None}}, {"accuracy": {"general-knowledge": {}}}),
        ({"accuracy": {"word-problems": {"max-tokens": 9}}}, {"accuracy": {"word-problems": {"max_tokens": 9}}}),
        ({"also": ["needle"], "skip": []}, {"also": ["needle"], "skip": []}),
        ({"deeper": {"own": {"with": "lm-eval"}}}, {"deeper": {"own": {"with": "lm-eval"}}}),
        ({"accept_warnings": {"w": {"reason": "r", "until": "2027-01-01"}}},
         {"accept_warnings": {"w": {"reason": "r", "until": "2027-01-01"}}}),
    ],
)  # fmt: skip
def test_hyphens_and_underscores_mean_the_same(expect: dict[str, Any], parsed: dict[str, Any]) -> None:
    assert parse_expect(expect) == parse_expect(parsed)


@pytest.mark.parametrize(
    ("expect", "complaint"),
    [
        ({"modle": 1}, "unknown key `modle` in `expect`: did you mean `model`?"),
        (
            {"suite": "fulll"},
            "`expect.suite: fulll` is not an allowed word (smoke, standard, full, soak); did you mean `full`?",
        ),
        ({"chat": "no"}, "`expect.chat: no` is not true or false"),
        ({"timeout": "30"}, "`expect.timeout: 30` is not a number, 0 or more"),
        ({"speed": {"flor": 1}}, "unknown key `flor` in `expect.speed`: did you mean `floor`?"),
        ({"speed": {"repeats": 0}}, "`expect.speed.repeats: 0` is not a whole number, 1 or more"),
        ({"speed": 5}, "`expect.speed: 5` is not a mapping (decode-at-least, ttft-at-most, "),
        ({"also": ["nedle"]}, "unknown name `nedle` in `expect.also`: did you mean `needle`?"),
        ({"accuracy": {"general-knowlege": {}}}, "unknown name `general-knowlege` in `expect.accuracy`: did you mean"),
        (
            {"accuracy": {"general-knowledge": {"n": 0}}},
            "`expect.accuracy.general-knowledge.n: 0` is not a whole number",
        ),
        (
            {"accuracy": {"general-knowledge": 0.5}},
            "`expect.accuracy.general-knowledge: 0.5` is not a mapping (at-least, ",
        ),
        ({"known-answer": True}, "`expect.known-answer: True` is not a list of {prompt, accept: [..]}, or false"),
    ],
)
def test_a_complaint_names_the_key_and_what_it_takes(expect: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ExpectError) as error:
        parse_expect(expect)
    assert str(error.value).startswith(complaint)


def test_every_key_says_what_it_is_for_and_names_of_folders_exist() -> None:
    keys = [*KEYS.values(), *(part for key in KEYS.values() for part in key.parts.values())]
    assert all(key.text for key in keys)
    assert all(key.names for key in keys if key.folder)
    assert Key(Kind.TEXT, "").names == ()


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
