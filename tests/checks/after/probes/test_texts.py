"""Prompts made on the spot: as long as asked, the same every time, with the needle where it should stand."""

from __future__ import annotations

import re

import pytest

from checks.after.measures.garbage import judge_text
from checks.after.probes.texts import CHARACTERS_PER_TOKEN, code_word, long_text, short_prompts, with_needle


@pytest.mark.parametrize("tokens", [100, 1000, 20_000])
def test_a_long_text_is_about_as_long_as_asked_and_always_the_same(tokens: int) -> None:
    text = long_text(tokens, 1)
    assert text == long_text(tokens, 1) != long_text(tokens, 2)
    assert 0 <= len(text) - tokens * CHARACTERS_PER_TOKEN < 120


def test_a_longer_text_begins_like_the_shorter_one_of_the_same_seed() -> None:
    assert long_text(500, 3).startswith(long_text(100, 3))


def test_a_long_text_is_plain_language_of_numbered_notes() -> None:
    text = long_text(500, 1)
    assert [int(number) for number in re.findall(r"Note (\d+):", text)] == list(range(1, text.count("Note ") + 1))
    assert judge_text(text, finish_reason="stop") == []
    assert long_text(0, 1) == ""


@pytest.mark.parametrize("depth", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_a_needle_stands_where_it_should_and_is_asked_for_at_the_end(depth: float) -> None:
    text = with_needle(1000, depth, "bakeli42", 1)
    haystack, _, question = text.partition("\n\n")
    assert haystack.find("bakeli42") / len(haystack) == pytest.approx(depth, abs=0.05)
    assert haystack.count("bakeli42") == 1
    assert "secret code of the harbour" in question and "bakeli42" not in question


def test_code_words_are_spelled_easily_differ_and_come_in_no_text() -> None:
    words = [code_word(seed) for seed in range(7, 27)]
    assert len(set(words)) == len(words) and words[0] == code_word(7)
    assert all(re.fullmatch(r"([bdfgklmnprst][aeiou]){3}\d\d", word) for word in words)
    assert not [word for word in words if word in long_text(5000, 1)]


def test_short_prompts_differ_and_are_short() -> None:
    prompts = short_prompts()
    assert len(set(prompts)) == len(prompts) >= 12
    assert all(len(prompt) < 80 for prompt in prompts)
