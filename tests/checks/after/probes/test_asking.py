"""A cut reply is asked again with more tokens, a base model for a completion, a server without scores without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checks.after.probes.asking import (
    Asking,
    ask_until_answered,
    conclusion,
    still_thinking,
    with_or_without_logprobs,
)
from checks.after.probes.context import Context, Server
from checks.after.probes.exchange import Answer, Ask
from checks.after.probes.requests import generate

CONTEXT = Context(server=Server(model="m"))


def reply(text: str, finish: str = "stop", **fields: Any) -> Answer:
    return Answer(path="/v1/chat/completions", status=200, text=text, finish=finish, **fields)


def drive(steps: Asking, waves: Sequence[Sequence[Answer]]) -> tuple[list[Answer], list[list[Ask]]]:
    asked = [list(next(steps))]
    for wave in waves:
        try:
            asked.append(list(steps.send(wave)))
        except StopIteration as end:
            return end.value, asked
    raise AssertionError("the steps go on")


def limits(asked: Sequence[Sequence[Ask]]) -> list[list[int]]:
    return [[(ask.payload or {})["max_tokens"] for ask in wave] for wave in asked]


def test_only_cut_answers_are_asked_again_with_more_each_time() -> None:
    cut = reply("Well, let me", "length")
    steps = ask_until_answered(CONTEXT, ["a", "b"], 32)
    answers, asked = drive(steps, [[cut, reply("B")], [cut], [reply("A")]])
    assert [answer.text for answer in answers] == ["A", "B"]
    assert limits(asked) == [[32, 32], [256], [1024]]


def test_a_cut_answer_that_is_enough_is_taken() -> None:
    steps = ask_until_answered(CONTEXT, ["a"], 32, enough=lambda _, answer: "Paris" in answer.text)
    answers, asked = drive(steps, [[reply("Paris, the", "length")]])
    assert (len(asked), answers[0].text) == (1, "Paris, the")


def test_the_last_limit_is_the_context_or_the_caller_s() -> None:
    cut = reply("x", "length")
    small = Context(server=Server(model="m", context=400))
    _, asked = drive(ask_until_answered(small, ["a" * 30], 32), [[cut], [cut], [cut]])
    assert limits(asked) == [[32], [256], [326]]
    _, asked = drive(ask_until_answered(CONTEXT, ["a"], 32, most=48), [[cut], [cut]])
    assert limits(asked) == [[32], [48]]


def test_a_refused_limit_leaves_the_first_answer() -> None:
    cut, refused = reply("x", "length"), Answer(path="/v1/chat/completions", status=400)
    answers, _ = drive(ask_until_answered(CONTEXT, ["a"], 32), [[cut], [refused], [refused], [refused]])
    assert answers == [cut]


def test_a_base_model_is_asked_for_a_completion() -> None:
    body = {"message": "tokenizer.chat_template is not set"}
    lacking = Answer(path="/v1/chat/completions", status=400, body=body)
    answers, asked = drive(ask_until_answered(CONTEXT, ["a?"], 8), [[lacking], [reply(" A")]])
    assert (asked[1][0].path, (asked[1][0].payload or {})["text"]) == ("/generate", "Question: a?\nAnswer:")
    assert answers[0].text == " A"


def test_what_follows_the_thoughts_is_the_conclusion() -> None:
    assert conclusion(reply("<think>hm</think> Paris")) == " Paris"
    assert conclusion(reply("hm</think> Paris")) == " Paris"
    assert conclusion(reply("<think>hm", "length")) == ""
    assert conclusion(reply("", reasoning="Paris")) == "Paris"
    assert conclusion(reply("", "length", reasoning="Paris?")) == ""
    assert still_thinking(reply("<think>hm", "length"))
    assert not still_thinking(reply("Paris", "length"))


def test_scores_are_left_out_where_the_server_has_none() -> None:
    refused = Answer(path="/generate", status=400, body={"error": {"message": "return_logprob is not supported"}})
    asks = [generate("a", 4, logprobs=True)]
    answers, asked = drive(with_or_without_logprobs(asks), [[refused], [reply("a")]])
    assert ("return_logprob" in (asked[0][0].payload or {}), "return_logprob" in (asked[1][0].payload or {})) == (
        True,
        False,
    )
    assert answers[0].text == "a"
    assert drive(with_or_without_logprobs(asks), [[reply("a")]])[1] == [asks]
