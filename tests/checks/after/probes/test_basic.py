"""Scripts of the smoke probes: canned answers in, the outcome and the reason for it out."""

from __future__ import annotations

from typing import Any

import pytest

from checks.after.probes.basic import accepted, garbage_of
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


ASKED_AT_ONCE = {
    "known-answer": 2, "greedy-repeat": 2, "limits": 1, "stream-equals-plain": 2, "prose": 1, "logprobs": 1,
}  # fmt: skip


@pytest.mark.parametrize("probe", ASKED_AT_ONCE)
def test_a_request_that_fails_or_an_answer_that_is_garbage_fails_every_probe(probe: str) -> None:
    broken, _ = drive(probe, [[BROKEN] * ASKED_AT_ONCE[probe]])
    assert (broken.outcome, "HTTP 500" in broken.message) == (FAIL, True)
    if probe != "logprobs":
        garbage, _ = drive(probe, [[GARBAGE] * ASKED_AT_ONCE[probe]])
        assert (garbage.outcome, garbage.message.startswith("degenerate output: ")) == (FAIL, True)
        assert garbage.figures["kind"] == "token-zero"


# --- ready


@pytest.mark.parametrize(
    ("answer", "outcome", "words"),
    [
        (Answer(path="/health", status=200, seconds=0.2), PASS, "/health returned 200"),
        (Answer(path="/health", status=503, seconds=0.1), FAIL, "still warming up, or shutting down"),
        (Answer(path="/health", status=503, seconds=20.0), FAIL, "the engine is stalled"),
        (Answer(path="/health", fault="timeout", error="timed out"), FAIL, "the engine is stalled"),
        (Answer(path="/health", fault="refused", error="connection refused"), FAIL, "connection refused"),
        (Answer(path="/health", status=404), FAIL, "HTTP 404"),
    ],
)
def test_health_says_whether_a_scheduler_moves(answer: Answer, outcome: Outcome, words: str) -> None:
    verdict, asked = drive("health", [[answer]])
    assert (verdict.outcome, words in verdict.message) == (outcome, True), verdict.message
    assert asked[0].payload is None


def models(*names: str) -> Answer:
    return Answer(path="/v1/models", status=200, body={"data": [{"id": name} for name in names]})


@pytest.mark.parametrize(
    ("answer", "expect", "outcome", "words"),
    [
        (models("smol"), {}, PASS, "serves smol"),
        (models("a", "smol"), {}, PASS, "serves smol"),
        (models("smol"), {"model": "mine"}, FAIL, "/v1/models lists smol, not mine"),
        (models("mine"), {"model": "mine"}, PASS, "serves mine"),
        (models(), {}, FAIL, "/v1/models lists no model"),
        (Answer(path="/v1/models", status=200, body=["odd"]), {}, FAIL, "/v1/models lists no model"),
        (Answer(path="/v1/models", status=401), {}, FAIL, "HTTP 401"),
    ],
)
def test_the_listed_name_is_the_expected_one(
    answer: Answer, expect: dict[str, Any], outcome: Outcome, words: str
) -> None:
    verdict, _ = drive("names-model", [[answer]], expecting(**expect))
    assert (verdict.outcome, words in verdict.message) == (outcome, True), verdict.message


# --- accepted words


@pytest.mark.parametrize(
    ("text", "words", "good"),
    [
        ("It is PARIS!", ["Paris"], True), ("Parisian", ["Paris"], False), ("17", ["7"], False), ("", ["a"], False),
        ("7.5 days", ["7.5"], True), ("it costs 7x5", ["7.5"], False), ("(a+b)", ["a+b"], True),
    ],
)  # fmt: skip
def test_an_accepted_word_must_stand_alone(text: str, words: list[str], good: bool) -> None:
    assert accepted(text, words) is good


def test_greedy_answers_may_part_at_a_near_tie_only() -> None:
    one = said("a b c", ids=(1, 2, 3), logprobs=(-0.1, -0.7, -0.2))
    tie = said("a x c", ids=(1, 9, 3), logprobs=(-0.1, -0.72, -0.2))
    sure = said("a x c", ids=(1, 9, 3), logprobs=(-0.1, -0.01, -0.2))
    for other, outcome, same in ((one, PASS, 3), (tie, PASS, 1), (sure, FAIL, 1)):
        verdict, _ = drive("greedy-repeat", [[one, other]])
        assert (verdict.outcome, verdict.figures["same"]) == (outcome, same)


def test_a_draft_method_that_returns_no_logprobs_is_asked_without() -> None:
    refused = Answer(path="/generate", status=400)
    verdict, asked = drive("greedy-repeat", [[refused, refused], [said("a b"), said("a b")]])
    assert verdict.outcome is PASS
    assert ["return_logprob" in (ask.payload or {}) for ask in asked] == [True, True, False, False]
    assert drive("greedy-repeat", [[refused, said("a b")]])[0].outcome is FAIL


# --- limits


@pytest.mark.parametrize(
    ("shown", "finish", "outcome"),
    [
        ("May, June, July, ", "stop", PASS),
        ("May, June, July, August", "length", FAIL),
        ("May, June, July, ", "length", FAIL),
        ("of course", "stop", OPEN),
    ],
)
def test_a_stop_string_is_taken_from_the_models_own_words(shown: str, finish: str, outcome: Outcome) -> None:
    free = said("May, June, July, August", finish="length", completion_tokens=12)
    verdict, asked = drive("limits", [[free], [said(shown, finish=finish)]])
    assert (asked[1].payload or {})["sampling_params"]["stop"] == ["August"]
    assert verdict.outcome is outcome


@pytest.mark.parametrize(("finish", "tokens"), [("stop", 12), ("length", 11), ("length", None), ("", 12)])
def test_a_limit_on_tokens_must_hold(finish: str, tokens: int | None) -> None:
    verdict, _ = drive("limits", [[said("May, June, July", finish=finish, completion_tokens=tokens)]])
    assert verdict.outcome is FAIL
    assert verdict.message == f"max_new_tokens 12 produced {tokens} tokens, finish reason {finish or 'none'}"


def test_an_answer_without_a_word_to_stop_at_decides_nothing() -> None:
    assert drive("limits", [[said("May May, May", finish="length", completion_tokens=12)]])[0].outcome is OPEN


# --- streams


def stream(text: str = "one two three", *, seconds: float = 1.0, finish: str = "stop", tokens: int = 10) -> Answer:
    times = tuple(seconds * step / 9 for step in range(10))
    return said(text, finish=finish, times=times, completion_tokens=tokens)


PLAIN = said("one two three")


@pytest.mark.parametrize(
    ("streamed", "expect", "outcome", "words"),
    [
        (stream(), {}, PASS, "10 joined events equal the plain answer"),
        (stream(seconds=20.0), {}, FAIL, "the decode rate of the stream is 0.45 tok/s, below the minimum of 1"),
        (stream(seconds=20.0), {"speed": {"floor": 0.1}}, PASS, "10 joined events"),
        (stream(finish="length"), {}, FAIL, "finish reason is length when streamed, but stop when plain"),
        (said("one two three", times=(0.0, 99.0)), {}, PASS, "2 joined events"),
        (said("one two three", times=(0.0, 5.0, 10.0)), {}, FAIL, "the decode rate of the stream is 0.20 tok/s"),
    ],
)
def test_a_stream_equals_the_plain_answer_and_does_not_drip(
    streamed: Answer, expect: dict[str, Any], outcome: Outcome, words: str
) -> None:
    verdict, asked = drive("stream-equals-plain", [[PLAIN, streamed]], expecting(**expect))
    assert (verdict.outcome, words in verdict.message) == (outcome, True), verdict.message
    assert [ask.stream for ask in asked] == [False, True]


def test_answers_that_part_are_asked_for_again_before_they_are_blamed() -> None:
    other = stream("one two four")
    twice, _ = drive("stream-equals-plain", [[PLAIN, other], [PLAIN, other]])
    assert (twice.outcome, twice.message) == (FAIL, "streamed and plain answers differ at position 9 of 13, twice")
    wavering, _ = drive("stream-equals-plain", [[PLAIN, other], [said("one two five"), other]])
    assert wavering.outcome is OPEN


# --- language

ENGLISH = "A lighthouse is a tall tower with a bright light on top that guides ships at night and warns them of rocks."
WORDS = "casa perro gato mesa silla ventana puerta libro papel lapiz agua fuego tierra"


@pytest.mark.parametrize(
    ("text", "expect", "outcome", "words"),
    [
        (ENGLISH, {}, PASS, "22 words of plausible language"),
        (WORDS, {}, FAIL, "not English: 0% of 13 words are common English words, expected 15%"),
        (WORDS, {"common_words": 0}, PASS, "13 words"),
        ("casa perro gato mesa", {}, PASS, "4 words"),
        ("Yes.", {}, FAIL, "only 1 words"),
        ("Yes.", {"common_words": 0}, PASS, "1 words"),
        ("灯塔为船只指引方向，非常重要的建筑物。", {}, FAIL, "degenerate output"),
    ],
)
def test_prose_is_language_in_the_script_of_the_prompt(
    text: str, expect: dict[str, Any], outcome: Outcome, words: str
) -> None:
    verdict, _ = drive("prose", [[said(text)]], expecting(**expect))
    assert (verdict.outcome, words in verdict.message) == (outcome, True), verdict.message


@pytest.mark.parametrize(
    ("probe", "refused", "answers"),
    [("prose", [NO_TEMPLATE], [said(ENGLISH)]), ("stream-equals-plain", [NO_TEMPLATE] * 2, [PLAIN, stream()])],
)
def test_a_base_model_is_asked_for_a_completion(probe: str, refused: list[Answer], answers: list[Answer]) -> None:
    verdict, asked = drive(probe, [refused, answers])
    assert (verdict.outcome, asked[-1].path) == (PASS, "/generate")


# --- log-probabilities


def scored(*prompt: float | None, answer: tuple[float | None, ...] = (-0.1, -0.5, -0.01, -0.9)) -> Answer:
    return said("x", prompt_logprobs=prompt, logprobs=answer)


@pytest.mark.parametrize(
    ("answer", "expect", "outcome", "words"),
    [
        (scored(-1.0, -3.0, -5.0, -0.2), {}, PASS, "2.30 nats per token on plain English"),
        (
            scored(-6.0, -9.0, -7.5, -8.0),
            {},
            FAIL,
            "plain English is too unlikely to the model: 7.62 nats per token, expected at most 6",
        ),
        (scored(-6.0, -9.0, -7.5, -8.0), {"prompt_nll": 8}, PASS, "7.62 nats"),
        (scored(-1.0, None, -5.0), {}, FAIL, ""),
        (scored(-1.0, 0.5, -5.0), {}, FAIL, ""),
        (scored(-2.0, -3.0, answer=(-11.93,) * 8), {}, FAIL, ""),
        (said("x"), {}, FAIL, "contains no log-probabilities although the request asked for them"),
        (Answer(path="/generate", status=400, raw="return_logprob is not supported"), {}, SKIP, "cannot return"),
        (Answer(path="/generate", status=400, raw="too long"), {}, FAIL, "HTTP 400"),
    ],
)
def test_log_probabilities_are_finite_and_those_of_a_trained_model(
    answer: Answer, expect: dict[str, Any], outcome: Outcome, words: str
) -> None:
    verdict, asked = drive("logprobs", [[answer]], expecting(**expect))
    assert (verdict.outcome, words in verdict.message) == (outcome, True), verdict.message
    assert (asked[0].payload or {})["logprob_start_len"] == 0


def test_a_call_of_a_tool_without_words_is_no_garbage() -> None:
    assert garbage_of(said("", tool_calls=({"id": "1"},))) == [] != garbage_of(said(""))
