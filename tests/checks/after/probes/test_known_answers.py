"""Known answers: right, wrong, cut, thought about, and of a weak model."""

from __future__ import annotations

from typing import Any

import pytest

from checks.after.probes.context import Context, Server
from checks.after.probes.exchange import Answer
from checks.after.probes.expectations import parse_expect
from checks.vocabulary import Outcome
from tests.support.driving import drive, said

PASS, FAIL, SKIP, OPEN = Outcome.PASS, Outcome.FAIL, Outcome.SKIP, Outcome.INCONCLUSIVE
GARBAGE = said("!" * 40)
BROKEN = Answer(path="/generate", status=500)
NO_TEMPLATE = Answer(path="/v1/chat/completions", status=400, body={"message": "tokenizer.chat_template is not set"})


def expecting(**expect: Any) -> Context:
    return Context(server=Server(model="smol", running=8), expect=parse_expect(expect))


@pytest.mark.parametrize(
    ("answers", "outcome", "words"),
    [
        ([said("Paris."), said("Seven")], PASS, "2 of 2 correct"),
        ([said("París"), said("七")], PASS, "2 of 2 correct"),
        ([said("Paris"), said("eight days a week")], FAIL, "1 of 2 known answers are wrong"),
        ([said("Paris", finish="length"), said("7")], PASS, "2 of 2 correct"),
    ],
)
def test_known_answers_must_hold_an_accepted_word_and_end(answers: list[Answer], outcome: Outcome, words: str) -> None:
    verdict, _ = drive("known-answer", [answers])
    assert (verdict.outcome, words in verdict.message) == (outcome, True), verdict.message


def test_a_thinking_model_that_ran_out_of_tokens_is_asked_again_with_more() -> None:
    thought = said("", reasoning="The user asks for the capital of France, which", finish="length")
    verdict, asked = drive("known-answer", [[thought, thought], [said("Paris"), said("Seven.")]])
    assert verdict.outcome is PASS
    assert [(ask.payload or {})["max_tokens"] for ask in asked] == [32, 32, 256, 256]


def test_thoughts_that_never_end_decide_nothing() -> None:
    thought = said("", reasoning="The user asks for the capital of some country, which is", finish="length")
    verdict, asked = drive("known-answer", [[thought] * 2] * 3 + [[thought] * 6] * 2)
    assert verdict.outcome is OPEN
    assert "the model thinks on at the token limit" in verdict.message
    assert max((ask.payload or {})["max_tokens"] for ask in asked) == 1024


def test_two_wrong_answers_are_followed_by_easier_questions() -> None:
    wrong = [said("Parisian food"), said("17 days")]
    right = [said(text) for text in ("Rome", "blue", "4", "the cat", "cold", "four")]
    assert drive("known-answer", [wrong, [said("nothing")] * 6])[0].outcome is FAIL
    verdict, _ = drive("known-answer", [wrong, right])
    assert (verdict.outcome, verdict.figures["right"]) == (OPEN, 6)


def test_an_answer_that_does_not_end_is_asked_with_more_tokens_before_the_end_token_is_blamed() -> None:
    endless = [said("Paris and", finish="length"), said("7 and", finish="length")]
    verdict, _ = drive("known-answer", [endless, [said("Paris.")]])
    assert verdict.outcome is PASS
    more = said("Paris and so on", finish="length")
    verdict, _ = drive("known-answer", [endless, [more], [more]])
    assert (verdict.outcome, "the end-of-sequence token" in verdict.message) == (FAIL, True)


def test_an_answer_inside_the_thoughts_counts() -> None:
    inside = said("", reasoning="It is Paris of course, the user wants that")
    assert drive("known-answer", [[inside, said("7")]])[0].outcome is PASS


def test_a_base_model_without_template_is_asked_in_completion_form() -> None:
    verdict, asked = drive("known-answer", [[NO_TEMPLATE, NO_TEMPLATE], [said(" Paris"), said(" 7 days")]])
    assert verdict.outcome is PASS
    assert asked[-1].path == "/generate"
    assert (asked[-1].payload or {})["text"] == "Question: How many days are there in a week?\nAnswer:"


def test_a_weak_model_gets_its_own_questions_or_none() -> None:
    own = expecting(known_answer=[{"prompt": "1, 2, 3,", "accept": ["4"]}])
    assert drive("known-answer", [[said("4, 5")]], own)[0].outcome is PASS
    assert drive("known-answer", [], expecting(known_answer=False))[0].outcome is SKIP
