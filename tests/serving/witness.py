"""Witnesses: plain requests that show whether a fault is there, most of them made from a few patterns.

A witness returns true if it saw the fault. On a healthy server it returns false, or raises `NotApplicable`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import httpx

from tests.serving import prose
from tests.serving.asking import Asker, Body, NotApplicable, padding, question

Witness = Callable[[Asker], bool]

UNREADABLE = (httpx.HTTPError, ValueError, KeyError, IndexError, TypeError, AttributeError)
"""What comes of a reply that cannot be read, or does not come at all."""

OPEN = "Tell me something about the harbour."
LONG = "Write a long story about the harbour."


def seen(witness: Witness, ask: Asker) -> bool:
    """Return what a witness saw; a reply that cannot be read at all is a fault as well."""
    try:
        return witness(ask)
    except NotApplicable:
        raise
    except UNREADABLE:
        return True


def answer(ask: Asker, text: str, route: str = "chat", stream: bool = False, **params: Any) -> str:
    """Return the answer to a question over any route."""
    if route == "chat":
        return ask.hear(text, **params).text if stream else ask.say(text, **params)
    if route == "native":
        return str(ask.native(f"Question: {text}\nAnswer:", params)["text"])
    return str(ask.complete(f"Question: {text}\nAnswer:", **params)["choices"][0]["text"])


def wrong(
    count: int = 6, at_once: int = 1, least: int = 1, pause: float = 0.0, before: int = 0, start: int = 0, **how: Any
) -> Witness:
    """Return a witness that asks simple questions and sees `least` of them answered wrongly.

    `before` puts so many tokens of other text in front of each question.
    """

    def look(ask: Asker) -> bool:
        if pause:
            ask.say("hello", max_tokens=4)
            time.sleep(pause)

        def one(number: int) -> bool:
            text, expected = question(number + start)
            lead = f"{padding(before, number)}\n\n" if before else ""
            try:
                return expected not in answer(ask, lead + text, **how)
            except httpx.HTTPError:
                return True

        return sum(ask.many(count, one, at_once)) >= least

    return look


def ours(count: int = 32, at_once: int = 16, **how: Any) -> Witness:
    """Return a witness that gives each request a word of its own, and sees one that gets another's."""

    def look(ask: Asker) -> bool:
        codes = [f"KX{number * 7919 % 9000 + 1000}" for number in range(count)]
        replies = ask.many(count, lambda number: answer(ask, f'Repeat exactly: "{codes[number]}"', **how), at_once)
        return any(
            code in reply for number, reply in enumerate(replies) for place, code in enumerate(codes) if place != number
        )

    return look


def recall(length: int, place: float = 0.5, count: int = 1, **how: Any) -> Witness:
    """Return a witness that hides a code in a long text and does not get it back."""

    def look(ask: Asker) -> bool:
        def one(number: int) -> bool:
            lines = padding(length, number).split("\n")
            code = f"{4000 + number * 37}"
            lines.insert(int(place * len(lines)), f"The number of the golden box is {code}.")
            asked = "\n".join([*lines, "", "What is the number of the golden box?"])
            return code not in answer(ask, asked, **how)

        return any(ask.many(count, one, 2))

    return look


def reply(
    check: Callable[[Body], bool],
    asked: str | Sequence[Body] = "What is the capital of France?",
    count: int = 1,
    **params: Any,
) -> Witness:
    """Return a witness that reads whole replies to a chat."""
    return lambda ask: any(ask.many(count, lambda _: check(ask.chat(asked, **params)), 1))


def said(check: Callable[[str], bool], asked: str | Sequence[Body], count: int = 1, **params: Any) -> Witness:
    """Return a witness that reads the text of answers to a chat."""
    return lambda ask: any(ask.many(count, lambda _: check(ask.say(asked, **params)), 1))


def heard(check: Callable[[Any], bool], asked: str | Sequence[Body] = OPEN, count: int = 1, **params: Any) -> Witness:
    """Return a witness that reads streams."""
    return lambda ask: any(ask.many(count, lambda _: check(ask.hear(asked, **params)), 1))


def stream_differs(asked: str = OPEN, count: int = 1, vary: bool = False, **params: Any) -> Witness:
    """Return a witness that compares a greedy stream with the whole reply."""

    def look(ask: Asker) -> bool:
        def one(number: int) -> bool:
            text = f"{asked} ({number})" if vary else asked
            return ask.hear(text, **params).text != ask.say(text, **params)

        return any(ask.many(count, one, 1))

    return look


def varies(asked: str = OPEN, count: int = 5, distinct: int = 2, **params: Any) -> Witness:
    """Return a witness that sees sampled answers that are too much alike."""

    def look(ask: Asker) -> bool:
        given = {"temperature": 1.0, "max_tokens": 60, **params}
        return len({ask.say(asked, **given) for _ in range(count)}) < distinct

    return look


def unequal(
    first: Mapping[str, Any], second: Mapping[str, Any] | None = None, asked: str = OPEN, count: int = 3
) -> Witness:
    """Return a witness that sees different answers where parameters leave no choice."""

    def look(ask: Asker) -> bool:
        texts = [ask.say(asked, **{"max_tokens": 60, **first}) for _ in range(count)]
        return len({*texts, *((ask.say(asked, **{"max_tokens": 60, **second}),) if second else ())}) > 1

    return look


def odd_text(
    asked: str = OPEN, count: int = 3, least: int = 1, at_once: int = 1, limit: float = 0.2, **params: Any
) -> Witness:
    """Return a witness that sees text that is no language: words in no order a writer would put them."""

    def look(ask: Asker) -> bool:
        texts = ask.many(count, lambda number: ask.say(f"{asked} ({number})", **{"max_tokens": 80, **params}), at_once)
        return sum(strange(text) > limit for text in texts) >= least

    return look


def strange(text: str) -> float:
    """Return the share of neighbouring words that never stand side by side in the model's own prose."""
    if not _PAIRS:
        told = [prose.sentence("en", number) for number in range(9000)]
        told += [text for text, _ in prose.about("harbour")]
        for line in told:
            words = line.lower().replace(",", "").replace(".", "").split()
            _PAIRS.update(pairwise(words))
    found = text.lower().replace(",", "").replace(".", " .").split()
    pairs = [pair for pair in pairwise(found) if "." not in pair]
    return sum(pair not in _PAIRS for pair in pairs) / max(1, len(pairs)) if len(pairs) > 10 else 0.0


_PAIRS: set[tuple[str, str]] = set()


def any_of(*witnesses: Witness) -> Witness:
    """Return a witness that sees what any of several sees."""
    return lambda ask: any(seen(witness, ask) for witness in witnesses)


def all_of(*witnesses: Witness) -> Witness:
    """Return a witness that sees a fault only if all of several do."""
    return lambda ask: all(seen(witness, ask) for witness in witnesses)


def scored(
    ask: Asker, prompt: str | list[int], count: int = 12, **params: Any
) -> tuple[list[float], list[float], list[int], Body]:
    """Generate with log-probabilities, then score the same tokens as a prompt; return both lists."""
    made = ask.native(
        prompt, {"max_new_tokens": count, **params}, return_logprob=True, top_logprobs_num=5, logprob_start_len=0
    )
    info = made["meta_info"]
    ids = [row[1] for row in info["input_token_logprobs"]]
    out = [row[1] for row in info["output_token_logprobs"]]
    again = ask.native(ids + out, {"max_new_tokens": 0}, return_logprob=True, logprob_start_len=0)["meta_info"]
    prefill = [row[0] for row in again["input_token_logprobs"]][len(ids) :]
    return [row[0] for row in info["output_token_logprobs"]], prefill, out, info
