"""Payloads of requests, and how far two greedy answers agree."""

from __future__ import annotations

from typing import Any

import pytest

from checks.after.probes.context import Context, Server
from checks.after.probes.exchange import Answer
from checks.after.probes.expectations import parse_expect
from checks.after.probes.requests import (
    HEALTH,
    agreement,
    as_completion,
    chat,
    generate,
    lacks_template,
    stands_still,
)
from tests.support.driving import said


def context(**expect: Any) -> Context:
    return Context(server=Server(model="smol"), expect=parse_expect(expect))


def test_a_text_and_token_ids_are_sent_greedily() -> None:
    text, ids = generate("Hi", 4), generate((1, 2), 4)
    assert text.payload == {"text": "Hi", "sampling_params": {"temperature": 0, "max_new_tokens": 4}}
    assert ids.payload == {"input_ids": [1, 2], "sampling_params": {"temperature": 0, "max_new_tokens": 4}}
    assert (text.path, text.stream) == ("/generate", False)


def test_what_else_is_wanted_is_added() -> None:
    ask = generate("Hi", 4, logprobs=True, stream=True, stop=["x"], ignore_eos=True)
    assert ask.stream and ask.payload is not None
    assert (ask.payload["return_logprob"], ask.payload["stream"]) == (True, True)
    assert ask.payload["sampling_params"]["stop"] == ["x"] and ask.payload["sampling_params"]["ignore_eos"] is True


def test_a_chat_turn_keeps_a_model_from_thinking_unless_it_shall() -> None:
    quiet, thinking = chat(context(), "Hi", 4), chat(context(thinking=True), "Hi", 4)
    assert quiet.path == "/v1/chat/completions" and quiet.payload is not None and thinking.payload is not None
    assert quiet.payload["chat_template_kwargs"] == {"enable_thinking": False, "thinking": False}
    assert "chat_template_kwargs" not in thinking.payload
    assert quiet.payload["messages"] == [{"role": "user", "content": "Hi"}]
    assert (quiet.payload["model"], quiet.payload["temperature"], quiet.payload["max_tokens"]) == ("smol", 0, 4)


def test_a_chat_turn_takes_further_parameters_and_streams_with_counts() -> None:
    ask = chat(context(model="named"), "Hi", 4, stream=True, tools=[{}])
    assert ask.stream and ask.payload is not None
    assert (ask.payload["model"], ask.payload["tools"]) == ("named", [{}])
    assert ask.payload["stream_options"] == {"include_usage": True}


def test_a_base_model_gets_a_question_to_be_continued() -> None:
    ask = chat(context(chat=False), "Who?", 4, stream=True)
    assert (ask.path, ask.stream) == ("/generate", True)
    assert ask.payload is not None and ask.payload["text"] == as_completion("Who?") == "Question: Who?\nAnswer:"
    assert ask.payload["sampling_params"]["stop"] == ["\nQuestion:", "\n\n"]
    assert chat(context(chat=True), "Who?", 4).path != "/generate"


@pytest.mark.parametrize(
    ("reply", "lacks"),
    [
        (Answer(path="", status=400, body={"message": "tokenizer.chat_template is not set"}), True),
        (Answer(path="", status=500, raw="no Chat Template was found"), True),
        (Answer(path="", status=400, body={"error": {"message": "too long"}}), False),
        (Answer(path="", status=200, body={"message": "chat template"}), False),
        (Answer(path="", status=404, body={"message": "chat template"}), False),
    ],
)
def test_a_missing_chat_template_is_recognised(reply: Answer, lacks: bool) -> None:
    assert lacks_template(reply) is lacks


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Answer(path="", status=503, seconds=20.0), "/health returned 503 after 20 s"),
        (Answer(path="", status=503, seconds=0.1), ""),
        (Answer(path="", status=0, fault="timeout"), f"did not answer /health in {HEALTH.timeout:.0f} s"),
        (Answer(path="", status=0, fault="refused"), ""),
        (Answer(path="", status=200, seconds=25.0), ""),
    ],
)
def test_an_engine_that_stands_still_is_told_from_one_that_is_not_there(reply: Answer, words: str) -> None:
    assert words in stands_still(reply)
    assert bool(stands_still(reply)) is bool(words)


# --- agreement


def greedy(*tokens: tuple[int, float | None]) -> Answer:
    return said("x", ids=tuple(token for token, _ in tokens), logprobs=tuple(value for _, value in tokens))


ONE = greedy((1, -0.1), (2, -0.7), (3, -0.2))


@pytest.mark.parametrize(
    ("other", "equal", "tie", "same", "of"),
    [
        (ONE, True, False, 3, 3),
        (greedy((1, -0.1), (9, -0.72), (3, -0.2)), False, True, 1, 3),
        (greedy((1, -0.1), (9, -1.19), (3, -0.2)), False, True, 1, 3),
        (greedy((1, -0.1), (9, -1.21), (3, -0.2)), False, False, 1, 3),
        (greedy((1, -0.1), (9, -0.01), (3, -0.2)), False, False, 1, 3),
        (greedy((1, -0.1), (9, None), (3, -0.2)), False, False, 1, 3),
        (greedy((1, -0.1)), False, False, 1, 3),
        (greedy((1, -0.1), (2, -0.7), (3, -0.2), (4, -0.1)), False, False, 3, 4),
        (greedy((8, -0.1), (2, -0.7), (3, -0.2)), False, False, 0, 3),
    ],
)
def test_greedy_answers_may_part_at_a_near_tie_only(other: Answer, equal: bool, tie: bool, same: int, of: int) -> None:
    for found in (agreement(ONE, other), agreement(other, ONE)):
        assert (found.equal, found.near_tie, found.same, found.of) == (equal, tie, same, of)
        assert found.close is (equal or tie)


def test_a_token_that_one_run_was_sure_of_is_no_tie_however_near_the_other() -> None:
    sure, unsure = greedy((1, -0.15)), greedy((2, -0.4))
    assert not agreement(sure, unsure).near_tie
    assert agreement(greedy((1, -0.21)), unsure).near_tie


def test_without_ids_the_characters_count_thoughts_included() -> None:
    assert agreement(said("abc"), said("abd")).same == 2
    assert agreement(said("abc"), said("abc")).equal
    assert not agreement(said("abc"), said("abc", reasoning="x")).equal
    assert agreement(said("abc", ids=(1, 2)), said("abc")).equal
    assert agreement(said(""), said("")).equal
