"""Loops at the end of a text, in its middle, and sentences that come again; what repeats for a good reason."""

from __future__ import annotations

import random

import pytest

from checks.after.measures.loops import LONGEST, find_loop, repeated_sentences

PROSE = (
    "The harbour lies below the town, and from the upper windows one sees the masts of the fishing boats. "
    "In winter the wind blows from the sea for weeks, and nobody goes out who does not have to."
)


@pytest.mark.parametrize(
    ("text", "unit", "times"),
    [
        ("true true true", "true ", 2.8),
        ("Once upon a time " + "abcde fghij " * 30, "abcde fghij ", 29.9),
        (PROSE + " and so on" * 12, " and so on", 12),
        (PROSE * 3, PROSE, 3),
        ((PROSE + " ") * 2 + PROSE[:120], PROSE + " ", 2.6),
        ("0" * 16, "0", 16),
        ("0 0 0 0 0 0 0 0 0", "0 ", 8.5),
        ("a  b\n" * 20, "a b ", 19.75),
        (PROSE + " " + "x1|" * 40, "x1|", 40),
    ],
)
def test_a_loop_is_named_by_its_unit_and_how_often_it_comes(text: str, unit: str, times: float) -> None:
    loop = find_loop(text)
    assert loop is not None
    assert sorted(loop.unit) == sorted(unit)
    assert loop.times == pytest.approx(times, abs=0.3)
    assert loop.share == pytest.approx(loop.times * len(loop.unit) / len(" ".join(text.split())), abs=0.02)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n ",
        "a",
        "no no",
        "ha ha",
        PROSE,
        PROSE + " Yes, yes, yes.",
        PROSE + "\n| 0 | 0 | 0 |\n| 0 | 0 | 0 |\n",
        "[0, 0, 0, 0, 0, 0]",
        "------",
        PROSE + " " + "-" * 60,
        PROSE + " Row your boat. Row your boat. Row your boat.",
        "1 2 3 4 5 6 7 8 9 10 11 12",
    ],
)
def test_a_refrain_a_table_and_a_rule_are_no_loops(text: str) -> None:
    assert find_loop(text) is None


@pytest.mark.parametrize(("zeros", "guilty"), [(1199, False), (1200, True)])
def test_signs_after_good_text_are_a_loop_only_without_an_end(zeros: int, guilty: bool) -> None:
    assert (find_loop(PROSE * 8 + "!" + "0" * zeros) is not None) is guilty


@pytest.mark.parametrize(("times", "guilty"), [(3, False), (7, True)])
def test_a_phrase_after_good_text_may_come_a_few_times(times: int, guilty: bool) -> None:
    phrase = "the old man and his sea, "
    assert (find_loop(PROSE * 3 + phrase * times) is not None) is guilty


def test_a_whole_page_needs_to_come_only_twice() -> None:
    page = PROSE + " " + PROSE[::-1]
    loop = find_loop(f"{PROSE.upper()} {page} {page}")
    assert loop is not None and loop.times == 2 and len(loop.unit) == len(page) + 1
    assert find_loop(f"{PROSE.upper()} {page}") is None


def test_a_loop_from_which_the_model_recovered_is_found_in_the_middle() -> None:
    loop = find_loop(PROSE + " " + "again and " * 12 + PROSE)
    assert loop is not None and loop.unit == "again and " and loop.times == 12
    assert find_loop(PROSE + " " + "again and " * 8 + PROSE) is None


def test_only_the_end_of_an_endless_text_is_looked_at() -> None:
    chance = random.Random(1)
    noise = "".join(chance.choices("abcdefgh", k=LONGEST))
    assert find_loop("loop loop loop loop " * 50 + noise) is None
    assert find_loop(noise + " loop loop loop loop" * 50) is not None


# --- sentences

SENTENCES = ["The lamp is on the table.", "The dog lies under the chair.", "Somebody has closed the window."]


def test_a_sentence_that_makes_up_most_of_a_text_is_named_with_its_count() -> None:
    text = " ".join([SENTENCES[0], SENTENCES[1], SENTENCES[0], SENTENCES[0].upper(), SENTENCES[2], SENTENCES[0]])
    assert repeated_sentences(text) == (4, SENTENCES[0].lower())


@pytest.mark.parametrize(
    "text",
    [
        "",
        PROSE,
        " ".join([SENTENCES[0]] * 3 + SENTENCES[1:]),
        " ".join([SENTENCES[0]] * 4 + [PROSE] * 2),
        " ".join([SENTENCES[0]] * 4 + [PROSE[:125]]),
        "Yes. No. Yes. No. Yes. No. Yes. No.",
    ],
)
def test_short_answers_and_few_repeats_are_left_alone(text: str) -> None:
    assert repeated_sentences(text) is None


def test_sentences_of_scripts_without_blanks_are_seen() -> None:
    text = "灯塔为船只指引方向。" * 5
    assert repeated_sentences(text) == (5, "灯塔为船只指引方向。")


def test_a_text_made_of_a_few_phrases_in_changing_order_is_seen() -> None:
    chance = random.Random(3)
    phrases = ["over the hill and far away", "down by the river and back again", "under the bridge and home again"]
    drifting = " ".join(chance.choice(phrases) for _ in range(40))
    repeated = repeated_sentences(drifting)
    assert repeated is not None and repeated[0] > 5
    assert repeated_sentences(" ".join(drifting.split()[:59])) is None
