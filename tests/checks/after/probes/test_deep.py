"""Scripts for the places where faults hide: long prompts, cache hits, batches, the context's edge, aborts."""

from __future__ import annotations

from typing import Any

import pytest

from checks.after.probes.context import Baseline, Context, Server
from checks.after.probes.deep import running_requests, sweep_sizes
from checks.after.probes.exchange import Answer
from checks.after.probes.texts import code_word
from checks.vocabulary import Outcome
from tests.support.driving import drive, said

PASS, FAIL, SKIP, OPEN = Outcome.PASS, Outcome.FAIL, Outcome.SKIP, Outcome.INCONCLUSIVE
GARBAGE = said("!" * 40)
REFUSED = Answer(path="/generate", status=400)
LANGUAGE = "These notes tell of people who bought and found things in the town before sunrise."


def server(suite: str = "standard", **fields: Any) -> Context:
    return Context(server=Server(model="smol", **{"running": 8, **fields}), suite=suite)


def greedy(*ids: int, logprob: float = -0.1, **more: Any) -> Answer:
    return said("Monday, Tuesday", ids=ids, logprobs=(logprob,) * len(ids), **more)


ONE, OTHER = greedy(5, 6), greedy(5, 7)


# --- long prompts


@pytest.mark.parametrize(
    ("fields", "tokens", "outcome"),
    [({"chunk": 2048}, 3300, PASS), ({"chunk": 2048}, 2048, SKIP), ({}, 3300, PASS), ({}, None, PASS)],
)
def test_a_long_prompt_must_take_several_chunks(fields: dict[str, Any], tokens: int | None, outcome: Outcome) -> None:
    verdict, _ = drive("long-prompt", [[said(LANGUAGE, prompt_tokens=tokens)]], server(**fields))
    assert (verdict.outcome, verdict.figures["prompt_tokens"]) == (outcome, tokens or 0)


@pytest.mark.parametrize(
    ("fields", "characters"),
    [
        ({"chunk": 2048}, 4 * 3276),
        ({"chunk": 2048, "page": 64}, 4 * 3404),
        ({}, 4 * 6553),
        ({"chunk": 100_000}, 4 * 40_000),
        ({"chunk": 2048, "context": 2000}, 4 * 1300),
        ({"chunk": 2048, "context": 100}, 4 * 64),
    ],
)
def test_a_long_prompt_goes_beyond_a_chunk_and_stays_inside_the_context(
    fields: dict[str, Any], characters: int
) -> None:
    _, asked = drive("long-prompt", [[said(LANGUAGE, prompt_tokens=99_999)]], server(**fields))
    prompt = (asked[0].payload or {})["messages"][0]["content"]
    assert len(prompt) == pytest.approx(characters, abs=220)


@pytest.mark.parametrize(
    ("found", "before", "outcome"),
    [
        ("1111", None, PASS), ("1110", None, OPEN), ("0001", None, OPEN), ("0000", None, FAIL),
        ("1110", 4, FAIL), ("1110", 3, OPEN), ("1111", 4, PASS),
    ],
)  # fmt: skip
def test_a_needle_that_was_found_before_must_be_found_again(found: str, before: int | None, outcome: Outcome) -> None:
    answers = [said(code_word(7 + index) if hit == "1" else "I do not know that") for index, hit in enumerate(found)]
    baseline = Baseline(figures={"needle": {"found": before}}) if before is not None else None
    verdict, _ = drive("needle", [answers], Context(server=Server(running=8), baseline=baseline))
    assert (verdict.outcome, verdict.figures["found"]) == (outcome, found.count("1"))
    assert len(verdict.evidence) == found.count("0")


def test_a_needle_inside_the_thoughts_is_found() -> None:
    answers = [said("", reasoning=f"The code is {code_word(7 + index)} as noted") for index in range(4)]
    assert drive("needle", [answers])[0].outcome is PASS


# --- cache


@pytest.mark.parametrize(
    ("second", "outcome", "words"),
    [
        (greedy(5, 6, cached_tokens=512), PASS, "the answers agree, with 512 tokens from the radix cache"),
        (greedy(5, 6), OPEN, "reports no cached tokens"),
        (greedy(5, 7, cached_tokens=512), FAIL, "the answer with 512 cached tokens differs after 1 of 2 tokens"),
        (GARBAGE, FAIL, "degenerate output"),
    ],
)
def test_a_cached_prompt_gives_the_same_answer(second: Answer, outcome: Outcome, words: str) -> None:
    verdict, asked = drive("cache-rerun", [[ONE], [second]])
    assert (verdict.outcome, words in verdict.message) == (outcome, True), verdict.message
    assert asked[0] == asked[1]


def test_without_a_cache_or_logprobs_the_rerun_adapts() -> None:
    assert drive("cache-rerun", [], server(radix_cache=False))[0].outcome is SKIP
    verdict, asked = drive("cache-rerun", [[REFUSED], [said("a")], [said("a", cached_tokens=9)]])
    assert verdict.outcome is PASS
    assert ["return_logprob" in (ask.payload or {}) for ask in asked] == [True, False, False]


# --- batches


@pytest.mark.parametrize(
    ("changed", "outcome"),
    [([], PASS), ([OTHER], OPEN), ([OTHER, OTHER], FAIL), ([GARBAGE], FAIL), ([REFUSED], FAIL)],
)
def test_greedy_answers_may_change_with_the_batch_up_to_a_share(changed: list[Answer], outcome: Outcome) -> None:
    crowd = [*changed, *[ONE] * (8 - len(changed))]
    verdict, asked = drive("concurrency-agreement", [*[[ONE]] * 8, crowd])
    assert verdict.outcome is outcome, verdict.message
    assert len(asked) == 16


def test_near_ties_are_counted_and_tolerated() -> None:
    unsure, tie = greedy(5, 6, logprob=-0.7), greedy(5, 7, logprob=-0.72)
    verdict, _ = drive("concurrency-agreement", [*[[unsure]] * 8, [tie] * 8])
    assert (verdict.outcome, verdict.figures["near_ties"], verdict.figures["parted"]) == (PASS, 1.0, 0.0)


def test_more_copies_are_asked_where_the_server_takes_more() -> None:
    _, asked = drive("concurrency-agreement", [*[[ONE]] * 8, [ONE] * 32], server(running=40))
    assert len(asked) == 40
    assert drive("concurrency-agreement", [], server(running=1))[0].outcome is SKIP


@pytest.mark.parametrize(
    ("captured", "most", "count", "sizes"),
    [
        ((1, 2, 4, 8), 8, 14, (1, 2, 3, 4, 5, 8)),
        ((1, 2, 4, 8), 16, 14, (1, 2, 3, 4, 5, 8, 9, 16)),
        ((), 8, 14, (1, 2, 3, 4, 5, 8)),
        ((64,), 8, 14, (8,)),
        (tuple(range(1, 65)), 64, 5, (1, 17, 33, 48, 64)),
    ],
)
def test_batch_sizes_cover_the_captured_ones_and_the_gaps_between(
    captured: tuple[int, ...], most: int, count: int, sizes: tuple[int, ...]
) -> None:
    assert sweep_sizes(captured, most, count) == sizes


@pytest.mark.parametrize(
    ("wave", "outcome", "words"),
    [
        ([ONE] * 3, PASS, "answers agree at batch sizes 1, 2, 3"),
        ([OTHER, ONE, ONE], FAIL, "batches of 3 give garbage or different answers; sizes tried: 1, 2, 3"),
        ([ONE, ONE, GARBAGE], FAIL, "batches of 3 give garbage"),
        ([ONE, OTHER, OTHER], PASS, "answers agree at batch sizes 1, 2, 3"),
        ([ONE, ONE, REFUSED], FAIL, "batch of 3: 1 of 3 requests failed"),
    ],
)
def test_no_batch_size_may_give_garbage_or_another_answer(wave: list[Answer], outcome: Outcome, words: str) -> None:
    context = server(running=3, graph_sizes=(1, 2))
    alone = [[ONE]] if GARBAGE in wave else []  # garbage is asked again alone
    verdict, asked = drive("batch-sweep", [[ONE], [ONE], [ONE, ONE], wave, *alone], context)
    assert (verdict.outcome, words in verdict.message) == (outcome, True), verdict.message
    assert all((ask.payload or {})["return_logprob"] for ask in asked)


# --- the context's edge

SPELLED = said("x", prompt_ids=tuple(range(100)))


@pytest.mark.parametrize(
    ("suite", "waves", "outcome", "words"),
    [
        ("standard", [[SPELLED], [REFUSED]], PASS, "a prompt of 4160 tokens is rejected"),
        ("full", [[SPELLED], [REFUSED], [ONE]], PASS, "a prompt of 4088 tokens is answered, one of 4160 is rejected"),
        ("full", [[SPELLED], [REFUSED], [said("", ids=(0,) * 16)]], FAIL, "garbage after a prompt of 4088 tokens"),
        ("standard", [[SPELLED], [ONE]], FAIL, "is not rejected with HTTP 400; the reply is: HTTP 200"),
        (
            "standard",
            [[SPELLED], [Answer(path="", status=500, error="broken")]],
            FAIL,
            "with HTTP 400; the reply is: broken",
        ),
        ("standard", [[said("x")]], SKIP, "the server does not return token ids"),
    ],
)
def test_a_prompt_that_does_not_fit_is_refused(
    suite: str, waves: list[list[Answer]], outcome: Outcome, words: str
) -> None:
    verdict, asked = drive("context-edge", waves, server(suite, context=4096))
    assert (verdict.outcome, words in verdict.message) == (outcome, True), verdict.message
    if len(asked) > 1:
        assert len((asked[1].payload or {})["input_ids"]) == 4160


def test_a_server_that_cuts_prompts_or_tells_no_limit_refuses_nothing() -> None:
    cutting = server(context=4096, info={"allow_auto_truncate": True})
    assert drive("context-edge", [[SPELLED], [ONE]], cutting)[0].outcome is PASS
    assert drive("context-edge", [], server())[0].outcome is SKIP


# --- aborts and pulses


def load(*running: object) -> Answer:
    return Answer(path="/v1/loads", status=200, body={"loads": [{"num_running_reqs": count} for count in running]})


GONE = Answer(path="/v1/loads", status=404)


@pytest.mark.parametrize(
    ("looks", "outcome", "words"),
    [
        ([load(0, 0)], PASS, "aborted requests stop running"),
        ([load(2), load(0)], PASS, "stop running"),
        ([load(1, 1)] * 16, FAIL, "2 requests are still running"),
        ([GONE, Answer(path="/get_load", status=200, body=[{"num_reqs": 0}])], PASS, "stop running"),
        ([GONE, GONE], SKIP, "does not report its running requests"),
    ],
)
def test_nothing_runs_on_after_its_client_went_away(looks: list[Answer], outcome: Outcome, words: str) -> None:
    cut = said("Wednesday", times=(0.1, 0.2, 0.3))
    verdict, asked = drive("abort", [[cut, cut], [ONE], *[[look] for look in looks]])
    assert (verdict.outcome, words in verdict.message) == (outcome, True), verdict.message
    assert [ask.cut_after for ask in asked[:3]] == [3, 3, 0]


def test_the_next_request_must_be_answered() -> None:
    cut = said("Wednesday", times=(0.1,))
    verdict, _ = drive("abort", [[cut, cut], [Answer(path="/generate", status=500)]])
    assert (verdict.outcome, verdict.message.startswith("after two aborted requests")) == (FAIL, True)


MUTE = Answer(path="/generate", fault="timeout", error="no answer within 20 s")


@pytest.mark.parametrize(
    ("answers", "outcome", "words"),
    [
        ([ONE] * 4, PASS, "4 short requests answered"),
        ([ONE, ONE, MUTE, MUTE], FAIL, "2 of 4 short requests got no answer within 20 s: a rank is not responding"),
        ([MUTE] * 4, FAIL, "4 of 4 requests failed: no answer within 20 s"),
        ([ONE, ONE, ONE, REFUSED], FAIL, "1 of 4 requests failed: HTTP 400"),
    ],
)
def test_requests_of_a_rank_that_stands_still_get_no_answer(
    answers: list[Answer], outcome: Outcome, words: str
) -> None:
    verdict, asked = drive("pulse", [answers], server("soak", ranks=2))
    assert (verdict.outcome, verdict.message) == (outcome, words)
    assert {ask.timeout for ask in asked} == {20}


@pytest.mark.parametrize(
    ("answer", "running"),
    [
        (load(2), 2),
        (load(1, 2), 3),
        (Answer(path="", status=200, body=[{"dp_rank": 0, "num_reqs": 1}, {"num_reqs": 2}]), 3),
        (Answer(path="", status=200, body={"load": 0}), None),
        (Answer(path="", status=200, body=[]), None),
        (Answer(path="", status=200, body=["odd"]), None),
        (GONE, None),
    ],
)
def test_running_requests_are_read_in_the_old_and_the_new_form(answer: Answer, running: float | None) -> None:
    assert running_requests(answer) == running
