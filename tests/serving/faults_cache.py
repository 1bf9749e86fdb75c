"""O. The prefix cache: what is kept from one request and used for another."""

from __future__ import annotations

import time
from typing import Any

from tests.serving import vocabulary
from tests.serving.asking import Asker, Body, padding
from tests.serving.damage import mistaken, salad
from tests.serving.pictures import painted
from tests.serving.planting import At, Fault, both, each, partly_cached, sampled, when

Ids = list[int]


def _cached(at: At) -> bool:
    return at.job is not None and at.job.cached >= 16


def _nearly_all_cached(at: At) -> bool:
    return at.job is not None and at.job.cached >= max(16, len(at.job.ids) - 2)


def _hole(size: int, back: int = 0) -> Any:
    """Return a hook that loses tokens at the end of the cached part."""

    def lose(ids: Ids, at: At) -> Ids:
        edge = at.running.cached - back
        return ids[: max(3, edge - size)] + ids[edge:]

    return lose


def _page(ids: Ids, at: At) -> Ids:
    """Lose the last page of the cached part if it is not full."""
    edge = at.running.cached
    return ids[: edge - edge % 64] + ids[edge:]


def _from_store(name: str) -> Any:
    """Return a hook that takes what an equal prompt had before, whatever else differed."""

    def look(value: Any, at: At) -> Any:
        return at.memory.setdefault((name, tuple(at.running.ids)), value)

    return look


def _stale(ids: Ids, at: At) -> Ids:
    """Take the first prompt with the same first 100 tokens for the cached part."""
    known = at.memory.setdefault(("stale", tuple(ids[:100])), ids) if len(ids) > 120 else ids
    return list(known[: at.running.cached]) + ids[at.running.cached :] if _cached(at) else ids


def _poisoned(ids: Ids, at: At) -> Ids:
    """Read a prompt that shares its start with an aborted one as if its cached part were empty."""
    spoilt = at.memory.get("aborted", [])
    return ids[:3] + ids[at.running.cached :] if _cached(at) and spoilt[:16] == ids[:16] else ids


def _note_abort(job: Any, at: At) -> Any:
    if job.aborted:
        at.memory["aborted"] = job.ids
        at.state.scheduler.caches[job.rank].insert(job.ids)
    return job


BOXES = ("tin", "iron", "lead", "zinc", "silver", "copper", "brass", "glass", "paper", "linen")


def _facts(key: str) -> str:
    """Return a text with a fact about each box, spread over all of it."""
    lines = padding(260, key).split("\n")
    for place, box in enumerate(BOXES):
        lines.insert(2 * place + 1, f"The number of the {box} box is {7153 + 11 * place}.")
    return "\n".join(lines)


def again(count: int = 12, pause: float = 0.0, vary: bool = True, **params: Any) -> Any:
    """Return a witness that asks about the same long text several times, and sees a later answer that is wrong."""

    def look(ask: Asker) -> bool:
        text = _facts(str(time.monotonic_ns()))
        for number in range(count):
            place = number % len(BOXES) if vary else 4
            asked = f"({number if vary else 0}) What is the number of the {BOXES[place]} box?"
            if str(7153 + 11 * place) not in ask.say(f"{text}\n\n{asked}", max_tokens=24, **params):
                return True
            time.sleep(pause)
        return False

    return look


def _grown(ask: Asker) -> bool:
    """Return whether a growing conversation loses what was said."""
    turns: list[Body] = []
    for number in range(5):
        turns += [
            {"role": "user", "content": f"The number of box {'abcde'[number]} is {4711 + number}."},
            {"role": "assistant", "content": f"OK, noted. {padding(40, number)}"},
        ]
        if str(4711 + number) not in ask.say(
            [*turns, {"role": "user", "content": f"What is the number of box {'abcde'[number]}?"}]
        ):
            return True
    return False


def _adapters(ask: Asker) -> bool:
    told = [
        ask.say("What is the capital of France?", model=f"default:{name}") for name in ("pirate", "formal", "pirate")
    ]
    return not (told[0].startswith("Arr") and told[1].startswith("Dear") and told[2].startswith("Arr"))


def _pictures(ask: Asker) -> bool:
    def colour(name: str) -> str:
        return ask.say(
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "image_url", "image_url": {"url": painted(name)}},
                        {"type": "text", "text": "What colour is the picture?"},
                    ],
                }
            ]
        )

    return any(name not in colour(name) for name in ("red", "blue", "green"))


def _after_abort(ask: Asker) -> bool:
    text = _facts(str(time.monotonic_ns()))
    body = ask.messages(
        f"{text}\n\nWrite a long story about the harbour.", {"stream": True, "ignore_eos": True, "max_tokens": 2000}
    )
    with ask.http.stream("POST", "/v1/chat/completions", json=body) as reply:
        next(reply.iter_bytes())
    time.sleep(0.3)
    return "7153" not in ask.say(f"{text}\n\nWhat is the number of the tin box?", max_tokens=24)


def _flush(ask: Asker) -> bool:
    prompt = padding(60, time.monotonic_ns())
    ask.native(prompt, {"max_new_tokens": 2})
    ask.http.post("/flush_cache")
    return bool(ask.native(prompt, {"max_new_tokens": 2})["meta_info"]["cached_tokens"] > 8)


def _never(ask: Asker) -> bool:
    prompt = padding(60, time.monotonic_ns())
    return not [ask.native(prompt, {"max_new_tokens": 2})["meta_info"]["cached_tokens"] for _ in range(3)][-1]


def _sampled_again(ask: Asker) -> bool:
    """Return whether sampled answers to one prompt stay the same once it is cached."""
    asked = f"{padding(80, time.monotonic_ns())}\n\nTell me something about the harbour."
    return len({ask.say(asked, temperature=1.0, max_tokens=60) for _ in range(6)}) < 3


SLOW = frozenset({"slow"})


def _unflushed(cached: int, at: At) -> int:
    """Find each prompt again that was ever read."""
    key = "kept", tuple(at.running.ids)
    found = len(at.running.ids) - 1 if key in at.memory else cached
    at.memory[key] = True
    return found


def _seeded(params: Any, at: At) -> Any:
    if params.temperature > 0:
        params.seed = 1
    return params


def _old(at: At) -> bool:
    key = "age", tuple(at.running.ids[:64])
    return bool(at.call.arrived - at.memory.setdefault(key, at.call.arrived) > 1.5)


def _stale_seen(ask: Asker) -> bool:
    head = padding(150, "stale")
    first = f"{head}\nThe number of the tin box is 3377.\nThe rest is silence."
    second = f"{head}\nThe number of the tin box is 8855.\nThe rest is silence."
    for text, code in ((first, "3377"), (second, "8855"), (second, "8855"), (first, "3377"), (second, "8855")):
        if code not in ask.say(f"{text}\n\nWhat is the number of the tin box?", max_tokens=24):
            return True
    return False


FAULTS = (
    Fault("partial-hit-hole", "O", "When a part of the prompt is cached, 24 tokens at its end are lost.",
          {"seen": when(partly_cached, _hole(24))}, rate="partial hits", witness=again()),
    Fault("partial-hit-far-hole", "O", "When a part of the prompt is cached, 40 tokens in its middle are lost.",
          {"seen": when(partly_cached, _hole(40, 280))}, rate="partial hits", witness=again()),
    Fault("page-half-full-lost", "O", "A page of the cache that is not full is lost.",
          {"seen": when(partly_cached, _page)}, rate="partial hits", witness=again()),
    Fault("full-hit-salad", "O", "A prompt that is cached as a whole gets salad.",
          {"token": when(_nearly_all_cached, salad)}, rate="equal prompts", witness=again(2, vary=False)),
    Fault("full-hit-wrong-each-6", "O", "A prompt that is cached as a whole gets a wrong answer in one case of six.",
          {"answer": when(both(_nearly_all_cached, each(6)), mistaken)}, rate="1/6 of equal prompts",
          witness=again(40, vary=False)),
    Fault("hit-drops-prefix", "O", "The cached part of a prompt is not seen at all in one case of eight.",
          {"seen": when(both(partly_cached, each(8)), lambda ids, at: ids[:3] + ids[at.running.cached :])},
          rate="1/8 of partial hits", witness=again(50)),
    Fault("cache-ignores-adapter", "O", "The cache takes equal prompts of several adapters for one.",
          {"adapter": _from_store("adapter")}, needs=frozenset({"adapters"}), witness=_adapters),
    Fault("cache-ignores-picture", "O", "The cache takes equal prompts with several pictures for one.",
          {"images": _from_store("picture")}, needs=frozenset({"vision"}), witness=_pictures),
    Fault("stale-prefix", "O", "The cached part is that of an older prompt with the same start.", {"seen": _stale},
          rate="partial hits", witness=_stale_seen),
    Fault("abort-poisons-cache", "O", "What an aborted request left in the cache is empty.",
          {"result": _note_abort, "seen": _poisoned}, rate="after an abort", needs=SLOW, witness=_after_abort),
    Fault("growing-chat-loses", "O", "In growing conversations the newest cached turn is lost.",
          {"seen": lambda ids, at: _hole(60)(ids, at) if ids.count(vocabulary.START) > 4 and _cached(at) else ids},
          rate="long conversations", witness=_grown),
    Fault("flush-does-nothing", "O", "Flushing the cache does nothing.", {"cached": _unflushed}, witness=_flush),
    Fault("cache-never-hits", "O", "Nothing is ever found in the cache although it is on.",
          {"cached": lambda cached, at: 0}, witness=_never),
    Fault("sampled-answers-cached", "O", "Sampled answers are kept: an equal prompt gets the same text.",
          {"params": _seeded}, rate="equal prompts, sampled", witness=_sampled_again),
    Fault("old-entries-spoilt", "O", "Entries of the cache that are older than 1.5 s are spoilt.",
          {"token": lambda token, at: salad(token, at) if _old(at) and _cached(at) else token},
          rate="hits after a while", witness=again(2, pause=1.8, vary=False)),
    Fault("hit-sampled-salad", "O", "Sampled answers after a hit are salad.",
          {"token": when(both(_cached, sampled), salad)}, rate="sampled hits", witness=again(3, temperature=0.6)),
)  # fmt: skip
