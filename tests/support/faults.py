"""Faults of the stand-in server, by name: how each one changes a correct output of `fake_model`.

`spoil` applies the faults of an output; the faults of HTTP are in `fake_server`.
"""

from __future__ import annotations

import itertools
import random
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tests.support.fake_model import FILLER, Output, pieces_of, token_id


class Request(Struct, frozen=True):
    """A request, as a fault may inspect it."""

    prompt: str
    payload: Mapping[str, Any]
    number: int  # of the generation request, counted per server
    running: int  # concurrent requests, including this one
    seen: bool  # whether the same prompt was answered before
    stream: bool
    tokens: int  # tokens in the prompt


Spoil = Callable[[Output, Request], Output]


def spoil(output: Output, faults: frozenset[str], request: Request) -> Output:
    """Return `output` as a server with these faults would return it."""
    for name in sorted(faults):
        if name in OUTPUT_FAULTS:
            output = OUTPUT_FAULTS[name](output, request)
    return output


def _always(text: str) -> Spoil:
    return lambda output, _: replace(output, pieces=pieces_of(text), calls=(), ids=(), logprobs=())


def _repeat(unit: str, times: int = 400) -> Spoil:
    pieces = pieces_of(unit) * (times // max(1, len(pieces_of(unit))) + 1)
    return lambda output, _: replace(output, pieces=pieces, calls=(), ids=(), logprobs=(), finish="length")


def _bangs(output: Output, _: Request) -> Output:
    return replace(output, pieces=("!",) * 400, ids=(0,) * 400, calls=(), logprobs=(), finish="length")


def _salad(output: Output, _: Request) -> Output:
    rng = random.Random(3)
    syllables = ["ment", "zug", "qua", "ist", "per", "olo", "xan", "driv", "ek", "ump", "fra", "thel", "gor", "iv"]
    words = ["".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(300)]
    return replace(output, pieces=pieces_of(" ".join(words)), calls=(), ids=(), logprobs=())


def _random_choice(output: Output, request: Request) -> Output:
    if not request.seen:  # not by number: the order of concurrent requests is random
        return output
    pieces = pieces_of("At this point the answer takes a quite different turn and goes on in another way entirely")
    kept = output.pieces[:2]
    return replace(output, pieces=(*kept, *pieces), ids=(), logprobs=())


def _with_arguments(output: Output, arguments: str) -> Output:
    calls = tuple({**call, "function": {**call["function"], "arguments": arguments}} for call in output.calls)
    return replace(output, calls=calls)


def _wrong_number(output: Output) -> Output:
    if not output.text.startswith("The answer is") or not re.search(r"\d", output.text):
        return output
    return replace(output, pieces=pieces_of("The answer is 999983."), ids=(), logprobs=())


def _when(test: Callable[[Request], bool], fault: Spoil) -> Spoil:
    return lambda output, request: fault(output, request) if test(request) else output


CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
PARAGRAPH = FILLER[:420] + "\n\n"
LOOP = _repeat("the lamp is bright and ")
OUTPUT_FAULTS: Mapping[str, Spoil] = {
    "bangs": _bangs,
    "bangs-as-text": _repeat("!"),
    "loop-word": _repeat(" true"),
    "loop-sentence": _repeat("The lamp shines over the water and the ships can see it from afar. "),
    "loop-paragraph": _when(lambda r: _asked(r) >= 200, _repeat(PARAGRAPH, 1200)),
    "one-character": _repeat("+"),
    "empty": _always(""),
    "whitespace": _repeat("\n"),
    "replacement-characters": _always("The \ufffd\ufffd of \ufffd\ufffd is \ufffd\ufffd\ufffd Par\ufffds and \ufffd"),
    "mojibake": _always("CafÃ© dâ€™Ã©tÃ© Ã  Paris, la citÃ© des lumiÃ¨res est trÃ¨s belle"),
    "wrong-script": _always("法国的首都是一座美丽的城市，灯塔为船只指引方向，非常重要的建筑物"),
    "mixed-scripts": _always("Пар the город を見る θάλασσα มหาสมุทร 바다 the sea בית море αβγ"),
    "word-salad": _salad,
    "undecoded-tokens": _always("TheĠcapitalĠofĠFranceĠisĠParisĠandĠtheĠlighthouseĊ"),
    "special-tokens": lambda output, _: replace(output, pieces=(*output.pieces, "<|im_end|>")),
    "wrong-answer": _always("It is a place that nobody has ever been to, said the old man by the sea."),
    "nondeterministic": _random_choice,
    "stream-differs": _when(lambda r: r.stream, _always("Something that is not what the plain answer says at all.")),
    "never-stops": lambda output, _: replace(
        output, pieces=(*output.pieces, *pieces_of(" " + FILLER)), finish="length"
    ),
    "long-prompt-garbage": _when(lambda r: r.tokens > 500, LOOP),
    "cache-hit-garbage": _when(
        lambda r: r.seen and r.tokens > 200, _always("Nothing of that kind was ever said here.")
    ),
    "batch-garbage": _when(lambda r: r.running > 2, _bangs),
    "batch-of-5-garbage": _when(lambda r: r.running == 5, _bangs),
    "state-leaks": _when(
        lambda r: r.running > 3, _always("Suddenly the answer speaks of something else entirely here.")
    ),
    "call-in-text": _when(lambda r: "tools" in r.payload, _always(CALL)),
    "call-broken-json": _when(lambda r: "tools" in r.payload, lambda o, _: _with_arguments(o, '{"city": "Par')),
    "call-wrong-arguments": _when(lambda r: "tools" in r.payload, lambda o, _: _with_arguments(o, '{"town": "Paris"}')),
    "call-lost-in-stream": _when(lambda r: "tools" in r.payload and r.stream, _always("I shall look that up for you.")),
    "call-finish-stop": lambda o, _: replace(o, finish="stop"),
    "call-finish-without-call": _when(
        lambda r: "tools" in r.payload, lambda o, _: replace(o, calls=(), pieces=(" ok",))
    ),
    "answer-in-reasoning": lambda o, _: replace(o, reasoning=o.reasoning + o.pieces, pieces=()) if o.reasoning else o,
    "think-in-answer": lambda o, _: replace(o, pieces=("<think>", *o.reasoning, "</think>", *o.pieces), reasoning=()),
    "schema-ignored": _when(
        lambda r: "response_format" in r.payload, _always("The capital of France is Paris, 5 letters.")
    ),
    "schema-wrong-type": _when(
        lambda r: "response_format" in r.payload, _always('{"city": "Paris", "letters": "five"}')
    ),
    "arithmetic-worse": _when(lambda r: zlib.crc32(r.prompt.encode()) % 4 == 0, lambda o, _: _wrong_number(o)),
    "answers-empty-sometimes": _when(lambda r: "answer is" in r.prompt and r.number % 9 == 0, _always("")),
    "letters-random": _when(lambda r: "D)" in r.prompt, _always("The answer is B.")),
    "greedy-moved": _when(
        lambda r: not r.stream and r.tokens < 20, _always("Otherwise than before it goes on like this")
    ),
    "needle-lost": _when(lambda r: "code" in r.prompt and r.tokens > 400, _always("I do not know of any such thing.")),
}


def _asked(request: Request) -> int:
    sampling = request.payload.get("sampling_params") or {}
    return int(request.payload.get("max_tokens") or sampling.get("max_new_tokens") or 0)


def ids_of(output: Output) -> tuple[int, ...]:
    """Return the token ids of an output: those that a fault has set, else those of its pieces."""
    return output.ids or tuple(token_id(piece) for piece in itertools.chain(output.reasoning, output.pieces))
