"""Garbage is seen in every form; good outputs of many kinds are left alone."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import pytest

from checks.after.measures.garbage import judge_logprobs, judge_text, script_of
from checks.after.measures.loops import find_loop
from tests.support.paths import DATA

GOOD = sorted((DATA / "good_outputs").glob("*.txt"))
PROSE = [text for path in GOOD if len(re.findall(r"[a-z]{3,}", text := path.read_text("utf-8"))) > 60]


def kinds(text: str, **more: object) -> set[str]:
    return {problem.kind for problem in judge_text(text, **more)}  # type: ignore[arg-type]


def test_the_corpus_of_good_outputs_is_large() -> None:
    assert len(GOOD) >= 60


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_output_raises_no_alarm_whole_or_cut(path: Path) -> None:
    text = path.read_text("utf-8")
    for size in (len(text), len(text) * 4 // 5, len(text) // 2):
        for finish in ("stop", "length"):
            assert judge_text(text[:size], finish_reason=finish) == []


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_output_raises_no_alarm_for_its_own_script(path: Path) -> None:
    text = path.read_text("utf-8")
    assert judge_text(text, finish_reason="stop", prompt_script=script_of(text) or None) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("!" * 40, "token-zero"),
        ("!" * 8, "token-zero"),
        ("Paris is" + "!" * 200, "token-zero"),
        ("+" * 16, "repeated-character"),
        ("true true true", "loop"),
        ("claus claus claus claus", "loop"),
        ("capital capital capital", "loop"),
        ("The sea is blue. " * 5, "loop"),
        ("0 0 0 0 0 0 0 0 0 0 0 0", "loop"),
        ("你好世界" * 20, "loop"),
        ("", "empty"),
        ("  \n\n ", "whitespace"),
        ("The \ufffd\ufffd of \ufffd\ufffd is Par\ufffds", "replacement-characters"),
        ("CafÃ© dâ€™Ã©tÃ© Ã  Paris, la citÃ© des lumiÃ¨res", "mojibake"),
        ("TheĠcapitalĠofĠFranceĠisĠParis", "undecoded-tokens"),
        ("The capital is Paris.<|im_end|>", "special-tokens"),
        ("Пар the город を見る θάλασσα มหาสมุทร 바다 the sea בית", "mixed-scripts"),
        ("ab\x00\x01\x02cd", "control-characters"),
    ],
)
def test_garbage_is_named(text: str, kind: str) -> None:
    assert kind in kinds(text)


@pytest.mark.parametrize("period", [1, 2, 3, 5, 8, 13, 20, 40, 80, 150, 300, 600, 1500])
def test_a_loop_of_any_period_is_found_after_any_beginning(period: int) -> None:
    rng = random.Random(period)
    for _ in range(25):
        source = rng.choice([text for text in PROSE if len(text) > 400])
        source = (source + " " + rng.choice(PROSE)) * (1 + period // 400)
        start = rng.randrange(max(1, len(source) - period))
        unit = source[start : start + period]
        if sum(map(str.isalpha, unit)) * 2 < len(unit):
            continue
        looped = rng.choice(["", source[:60], source[:250]]) + unit * max(4, 300 // len(unit))
        assert judge_text(looped, finish_reason="length"), looped[-200:]


def test_a_sentence_that_comes_with_changing_numbers_is_found() -> None:
    text = "".join(f"{n}. The cat sat on the mat and looked at the dog. " for n in range(1, 12))
    assert kinds(text) == {"loop"}


def test_sentences_that_come_again_in_changing_order_are_found() -> None:
    parts = ["The lamp is on the table. ", "The dog lies under the chair. "]
    rng = random.Random(4)
    assert kinds("".join(rng.choice(parts) for _ in range(16))) == {"loop"}


def test_the_whole_loop_is_reported_with_its_period() -> None:
    loop = find_loop("Once upon a time " + "abcde fghij " * 30)
    assert loop is not None
    assert len(loop.unit) == 12
    assert loop.times >= 29


def test_searching_a_long_text_is_linear() -> None:
    # 60,000 characters without a loop, and the worst case for a naive search: no time-out is the assertion
    assert find_loop("ab" * 30 + "".join(random.Random(1).choices("abc ", k=60_000))) is None


def test_token_id_zero_is_seen_even_when_the_text_is_empty() -> None:
    assert kinds("", token_ids=[0] * 16) == {"no-text", "token-zero"}


def test_a_single_token_id_zero_is_no_alarm() -> None:
    assert kinds("Hello! How are you?", token_ids=[5, 0, 9, 11, 17]) == set()


def test_a_character_cut_by_the_token_limit_is_no_alarm() -> None:
    text = "The answer in Chinese is 灯\ufffd\ufffd"
    assert kinds(text, finish_reason="length") == set()
    assert kinds(text, finish_reason="stop") == {"replacement-characters"}


def test_an_answer_in_another_script_is_wrong_only_when_the_script_is_asked_for() -> None:
    text = "灯塔为船只指引方向，非常重要的建筑物。"
    assert kinds(text, prompt_script="LATIN") == {"wrong-script"}
    assert kinds(text) == set()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([None, -0.5, -0.2], "nan-logprobs"),
        ([math.nan, -0.5], "nan-logprobs"),
        ([-math.inf, -0.5], "nan-logprobs"),
        ([0.5, -0.1], "positive-logprobs"),
        ([-11.93] * 8, "flat-logprobs"),
        ([-10.1, -10.3, -9.9, -10.2, -10.0], "flat-logprobs"),
    ],
)
def test_sick_log_probabilities_are_named(values: list[float | None], kind: str) -> None:
    assert [problem.kind for problem in judge_logprobs(values)] == [kind]


@pytest.mark.parametrize("values", [[-0.1, -2.0, -0.003, -0.7], [0.0, 0.0, 0.0, 0.0], [-0.5], [-3.0, -3.0]])
def test_healthy_log_probabilities_pass(values: list[float | None]) -> None:
    assert judge_logprobs(values) == []
