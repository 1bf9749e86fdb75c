"""I. Length: what goes wrong only in long prompts, or late in long answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.serving import vocabulary
from tests.serving.asking import Asker, padding
from tests.serving.calls import Refusal
from tests.serving.damage import salad, setting
from tests.serving.planting import At, Fault, chat, decoded_over, prompt_over, sampled, when
from tests.serving.prose import unit
from tests.serving.witness import all_of, any_of, odd_text, recall, reply, wrong

Ids = list[int]


def _holding(change: Callable[[Ids], Ids]) -> Any:
    return lambda ids, at: change(ids)


def _window(size: int, start: int = 24) -> Any:
    return _holding(lambda ids: ids[:start] + ids[-size:])


def _middle(ids: Ids) -> Ids:
    return ids[:2000] + ids[len(ids) - 2000 :]


def _late_tail(ids: Ids) -> Ids:
    """Lose what stands shortly before the question."""
    return ids[:-400] + ids[-60:]


def _chunk_edges(ids: Ids) -> Ids:
    """Lose the tokens at each border of a chunk of 2,048."""
    return [token for place, token in enumerate(ids) if place < 100 or place % 2048 >= 24 or place > len(ids) - 60]


def _holes(share: float) -> Any:
    """Lose a share of the tokens past 4,000, more the farther they are from the end."""
    return _holding(
        lambda ids: [
            token
            for place, token in enumerate(ids)
            if place < 40 or len(ids) - place < 3000 or unit("hole", place) > share
        ]
    )


def _edge(_params: Any, at: At) -> Any:
    if len(at.running.ids) > 0.9 * at.state.options.context:
        raise Refusal("CUDA error: an illegal memory access was encountered", 500)
    return _params


def _refused(params: Any, at: At) -> Any:
    if len(at.running.ids) > 8000:
        raise Refusal(
            f"The input ({len(at.running.ids)} tokens) is longer than the model's context length (8000 tokens)."
        )
    return params


def _looped(token: int, at: At) -> int:
    out = at.running.out
    return out[-12] if len(out) > 300 else token


def _truncated(ids: Any, at: At) -> Any:
    limit = at.state.options.context - 700
    return ids if len(ids) <= limit else ids[:24] + ids[len(ids) - limit + 24 :]


def _needles(length: int, *places: float) -> Any:
    return any_of(*(recall(length, place) for place in places))


def _too_long(ask: Asker) -> bool:
    text = "word " * 40_000
    return ask.post("/v1/chat/completions", ask.messages(text, {"max_tokens": 4})).status_code != 400


def _long_count(ask: Asker) -> bool:
    text = ask.say("Count from 1 to 400", max_tokens=3000)
    return text != ", ".join(map(str, range(1, 401)))


def _far(ask: Asker) -> bool:
    prompt = f"{padding(22_000)}\n\nWhat is the capital of France?"
    return "Paris" not in ask.say(prompt, max_tokens=24)


def _border(ask: Asker) -> bool:
    """Return whether some of many numbers in a long list are not found."""
    rows = [f"The number of box {name} is {number}." for number, name in enumerate(_names(400), 5000)]
    text = "\n".join(rows)

    def one(place: int) -> bool:
        name = _names(400)[place]
        return str(5000 + place) not in ask.say(f"{text}\n\nWhat is the number of box {name}?", max_tokens=24)

    return any(ask.many(40, lambda number: one(145 + number), 2))


def _names(count: int) -> list[str]:
    return ["".join("abcdefghij"[int(digit)] for digit in f"{number:03d}") for number in range(count)]


def _edge_seen(ask: Asker) -> bool:
    text = f"{padding(26_000)}\n\nWhat is the capital of France?"
    return ask.post("/v1/chat/completions", ask.messages(text, {"max_tokens": 24})).status_code == 500


FAULTS = (
    Fault("window-2k", "I", "Past 4,000 tokens only the last 2,000 are seen.",
          {"seen": when(prompt_over(4000), _window(2000))}, rate="prompts above 4k", witness=_needles(6000, 0.2, 0.5)),
    Fault("window-4k", "I", "Past 4,096 tokens only the last 4,096 are seen.",
          {"seen": when(prompt_over(4200), _window(4096))}, rate="prompts above 4k", witness=_needles(9000, 0.1)),
    Fault("window-16k", "I", "Only the last 16,000 tokens are seen.",
          {"seen": when(prompt_over(16_100), _window(16_000))}, rate="prompts above 16k",
          witness=_needles(24_000, 0.1)),
    Fault("middle-lost-8k", "I", "The middle of prompts above 8,000 tokens is dropped.",
          {"seen": when(prompt_over(8000), _holding(_middle))}, rate="prompts above 8k", witness=_needles(11_000, 0.5)),
    Fault("head-lost-6k", "I", "The first 1,000 tokens of prompts above 6,000 are lost.",
          {"seen": when(prompt_over(6000), _holding(lambda ids: ids[:4] + ids[1000:]))}, rate="prompts above 6k",
          witness=_needles(8000, 0.03)),
    Fault("near-end-lost-6k", "I", "In prompts above 6,000 tokens the text before the question is lost.",
          {"seen": when(prompt_over(6000), _holding(_late_tail))}, rate="prompts above 6k",
          witness=_needles(8000, 0.98)),
    Fault("chunk-borders-lost", "I", "Tokens at the borders of chunks of 2,048 are lost.",
          {"seen": when(prompt_over(2100), _holding(_chunk_edges))}, rate="few places in prompts above 2k",
          witness=_border),
    Fault("holes-past-4k", "I", "Past 4,000 tokens one far token in seven is not seen.",
          {"seen": when(prompt_over(4000), _holes(0.15))}, rate="prompts above 4k",
          witness=any_of(*(recall(8000, place) for place in (0.1, 0.2, 0.3, 0.4, 0.5)))),
    Fault("rope-base-wrong", "I", "Quality falls with the position, as with a wrong rope base.",
          {"weaker": lambda loss, at: loss + min(0.6, at.extra / 12_000)}, rate="grows with the position",
          witness=all_of(wrong(12, before=12_000, least=1))),
    Fault("context-lies", "I", "Prompts above 8,000 tokens are refused although the card says 32,768.",
          {"params": _refused}, rate="prompts above 8k", witness=_needles(11_000, 0.5)),
    Fault("edge-crashes", "I", "Prompts near the end of the context end in an error.", {"params": _edge},
          rate="prompts above 90 % of the context", witness=_edge_seen),
    Fault("far-edge-wrong", "I", "Above 24,000 tokens answers are wrong.", {"token": when(prompt_over(24_000), salad)},
          rate="prompts above 24k", witness=_far),
    Fault("overlong-truncated", "I", "Overlong prompts are cut without a word instead of refused.", {"ids": _truncated},
          rate="prompts above the context", witness=_too_long),
    Fault("salad-after-300", "I", "Answers turn into word salad after 300 tokens.",
          {"token": lambda token, at: salad(token, at) if decoded_over(300)(at) and token != vocabulary.END else token},
          rate="answers above 300 tokens", witness=_long_count),
    Fault("salad-after-1000", "I", "Answers turn into word salad after 1,000 tokens.",
          {
              "token": lambda token, at: (
                  salad(token, at) if decoded_over(1000)(at) and token != vocabulary.END else token
              )
          }, rate="answers above 1,000 tokens", witness=_long_count),
    Fault("loops-after-300", "I", "Answers repeat themselves for ever after 300 tokens.", {"token": _looped},
          rate="answers above 300 tokens", witness=_long_count),
    Fault("answers-capped-256", "I", "Answers end after 256 tokens.",
          {"params": setting(limit=lambda limit: min(limit, 256))}, rate="answers above 256 tokens",
          witness=reply(lambda body: body["usage"]["completion_tokens"] < 400, "Count from 1 to 400", max_tokens=400)),
    Fault("ends-at-512", "I", "Answers end after 512 tokens as if they were complete.",
          {
              "finish": lambda finish, at: (
                  finish or ({"type": "stop", "matched": vocabulary.END} if len(at.running.out) >= 512 else None)
              )
          }, rate="answers above 512 tokens", witness=_long_count),
    Fault("sampled-late-salad", "I", "Sampled answers turn into salad after 150 tokens.",
          {"token": lambda token, at: salad(token, at) if sampled(at) and decoded_over(150)(at) else token},
          rate="sampled, above 150 tokens",
          witness=odd_text("Write a long story about the harbour.", temperature=0.7, max_tokens=500, limit=0.15)),
    Fault("long-chats-empty", "I", "Chats above 16,000 tokens get an empty answer.",
          {
              "finish": lambda finish, at: (
                  {"type": "stop", "matched": vocabulary.END} if chat(at) and prompt_over(16_000)(at) else finish
              )
          }, rate="prompts above 16k", witness=_far),
)  # fmt: skip
