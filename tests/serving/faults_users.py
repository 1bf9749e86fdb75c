"""G. Users must not mix: one gets what belongs to another."""

from __future__ import annotations

import time
from typing import Any

from tests.serving import vocabulary
from tests.serving.asking import Asker
from tests.serving.damage import bodies, chunks, others
from tests.serving.pictures import painted
from tests.serving.planting import At, Fault, Hook, When, always, both, chat, each, lane, native, plain, streamed, when
from tests.serving.walk import Walk
from tests.serving.witness import OPEN, any_of, ours


def _theirs(condition: When) -> Hook:
    """Return a hook that lets the model read the prompt of a request that runs beside."""

    def look(ids: list[int], at: At) -> list[int]:
        beside = [job for job in others(at) if job.call is not at.call]
        return list(beside[at.call.number % len(beside)].ids) if beside and condition(at) else ids

    return look


def _previous(key: str) -> Hook:
    """Return a hook that keeps each prompt and gives that of the request before."""

    def look(ids: list[int], at: At) -> list[int]:
        before = at.memory.get(key, ids)
        at.memory[key] = ids
        return list(before)

    return look


def _same_start(ids: list[int], at: At) -> list[int]:
    """Serve from a store of whole answers whose key is the start of the prompt."""
    return list(at.memory.setdefault(("start", len(ids), tuple(ids[:9])), ids))


def _own_step(token: int, at: At) -> int:
    """Take the token that a neighbour has next, at one step."""
    if len(at.running.out) != 3:
        return token
    beside = [job.walk for job in others(at) if job.walk is not None and not job.finish]
    walk = beside[at.call.number % len(beside)] if beside else None
    return walk.expect().best() if isinstance(walk, Walk) else token


def _aborted_text(ids: list[int], at: At) -> list[int]:
    """Give the request after an abort the prompt of the aborted one."""
    return list(at.memory.pop("aborted", ids))


def _remember_abort(job: Any, at: At) -> Any:
    if job.aborted:
        at.memory["aborted"] = job.ids
    return job


def _lost_system(prompt: Any, at: At) -> Any:
    """Give chats without a system message that of the chat before."""
    if not chat(at):
        return prompt
    start = "<|im_start|>system\n"
    if prompt.startswith(start):
        at.memory["system"] = prompt[: prompt.index("<|im_end|>\n") + len("<|im_end|>\n")]
        return prompt
    return at.memory.get("system", "") + prompt


def _last_seen(images: list[str], at: At) -> list[str]:
    """Show the picture of the request before."""
    before = at.memory.get("image", images)
    at.memory["image"] = images
    return list(before)


def _adapter(name: str, at: At) -> str:
    """Take the adapter of a neighbour."""
    beside = [job.adapter for job in others(at) if job.adapter != name]
    return beside[0] if beside else name


def _swapped_ends(body: dict[str, Any], at: At) -> None:
    """Swap the texts of the replies of two requests that end one after the other."""
    if "choices" not in body or "message" not in body["choices"][0]:
        return
    message = body["choices"][0]["message"]
    waiting = at.memory.get("end")
    at.memory["end"] = dict(message), time.monotonic()
    if waiting and time.monotonic() - waiting[1] < 0.05:
        message.update(waiting[0])


def _leaked(event: dict[str, Any], at: At) -> None:
    """Keep a piece of text, and give it to the next stream."""
    for choice in event.get("choices") or ():
        delta = choice.get("delta") or {}
        if delta.get("content"):
            number, text = at.memory.get("piece", (at.call.number, ""))
            at.memory["piece"] = at.call.number, delta["content"]
            if number != at.call.number and text.strip():
                delta["content"] = text


def _by_length(ids: list[int], at: At) -> list[int]:
    """Take requests of the same length for one another."""
    store = at.memory.setdefault("length", {})
    known = store.get(len(ids))
    store[len(ids)] = ids
    return list(known) if known is not None and at.call.number % 7 == 3 else ids


def _adapters(ask: Asker) -> bool:
    def one(number: int) -> bool:
        name, mark = (("pirate", "Arr"), ("formal", "Dear reader"))[number % 2]
        return mark not in ask.say("What is the capital of France?", model=f"default:{name}")

    return any(ask.many(24, one, 8))


def _pictures(ask: Asker) -> bool:
    def one(number: int) -> bool:
        colour = ("red", "blue", "green", "yellow")[number % 4]
        parts = [
            {"type": "text", "text": "What colour is this picture?"},
            {"type": "image_url", "image_url": {"url": painted(colour)}},
        ]
        return colour not in ask.say([{"role": "user", "content": parts}])

    return any(ask.many(8, one, 1))


def _after_abort(ask: Asker) -> bool:
    for number in range(3):
        body = ask.messages(f'Repeat exactly: "{"river stone garden " * 40} secret{number}"', {"stream": True})
        with ask.http.stream("POST", "/v1/chat/completions", json=body) as reply:
            next(reply.iter_bytes())
        time.sleep(0.15)
        if "clean" not in ask.say('Repeat exactly: "clean"'):
            return True
    return False


def _systems(ask: Asker) -> bool:
    ask.say([{"role": "system", "content": "Answer with the word banana."}, {"role": "user", "content": "hello"}])
    return "banana" in ask.say(OPEN, max_tokens=20)


def _natives(ask: Asker) -> bool:
    codes = [f"KX{number * 7919 % 9000 + 1000}" for number in range(32)]
    got = ask.many(32, lambda number: ask.native(f"The code is {codes[number]}. The code is")["text"], 12)
    return any(code in text for number, text in enumerate(got) for place, code in enumerate(codes) if place != number)


SLOW = frozenset({"slow"})


def _keep(ids: list[int], at: At, other: bool) -> list[int]:
    before = at.memory.get("kept", ids)
    at.memory["kept"] = ids
    return list(before) if other else ids


def _exact(ask: Asker, number: int) -> bool:
    text = f"code {number} of the blue garden"
    return ask.hear(f'Repeat exactly: "{text}"').text != text


def _other(ask: Asker, number: int) -> bool:
    words = [vocabulary.decode([token]).strip() for token in vocabulary.WORDS[number : number + 8]]
    text = " ".join(words)
    return ask.say(f'Repeat exactly: "{text}"') != text


FAULTS = (
    Fault("cross-talk-each-15", "G", "One request in 15 gets the answer to a neighbour's prompt.",
          {"seen": _theirs(each(15))}, rate="1/15 in batches", needs=SLOW, witness=ours(96)),
    Fault("cross-talk-each-50", "G", "One request in 50 gets the answer to a neighbour's prompt.",
          {"seen": _theirs(each(50))}, rate="1/50 in batches", needs=SLOW, witness=ours(300)),
    Fault("cross-talk-streams", "G", "One stream in 12 gets the answer to a neighbour's prompt.",
          {"seen": _theirs(both(streamed, each(12)))}, rate="1/12 of streams in batches", needs=SLOW,
          witness=ours(96, stream=True)),
    Fault("cross-talk-lane-5", "G", "Lane 5 reads the prompt of a neighbour.", {"seen": _theirs(lane(5))},
          rate="only lane 5", needs=SLOW, witness=ours(32)),
    Fault("cross-talk-native-each-12", "G", "One request in 12 to the engine's own route gets a neighbour's answer.",
          {"seen": _theirs(both(native, each(12)))}, rate="1/12", needs=SLOW, witness=_natives),
    Fault("step-of-neighbour-each-20", "G", "One request in 20 takes a single token of a neighbour.",
          {"token": when(each(20), _own_step)}, rate="1/20, one token", needs=SLOW,
          witness=lambda ask: any(ask.many(160, lambda number: _other(ask, number), 8))),
    Fault("answer-of-the-one-before-each-25", "G", "One request in 25 gets the answer of the one before.",
          {"seen": lambda ids, at: _keep(ids, at, each(25)(at))}, rate="1/25", witness=ours(150, 1)),
    Fault("answers-stored-by-start", "G", "Answers are stored under the start of the prompt and its length.",
          {"seen": _same_start}, witness=any_of(ours(16, 1), ours(16, 8))),
    Fault("same-length-confused", "G", "Now and then a prompt is taken for another of the same length.",
          {"seen": _by_length}, rate="1/7 of equal lengths", witness=ours(60, 4)),
    Fault("abort-cross-talk", "G", "The request after an abort gets the rest of the aborted one.",
          {"result": _remember_abort, "seen": _aborted_text}, rate="after an abort", needs=SLOW, witness=_after_abort),
    Fault("system-of-the-one-before", "G", "Chats without a system message get that of the one before.",
          {"prompt": _lost_system}, witness=_systems),
    Fault("picture-of-the-one-before", "G", "Each request sees the picture of the one before.", {"images": _last_seen},
          needs=frozenset({"vision"}), witness=_pictures),
    Fault("adapters-crossed", "G", "In a batch with several adapters some requests get another's.",
          {"adapter": _adapter}, rate="only mixed batches", needs=frozenset({"adapters", "slow"}), witness=_adapters),
    Fault("replies-swapped", "G", "Replies that end within 50 ms of each other are mixed up.",
          {"reply": when(both(plain, always), bodies(_swapped_ends))}, rate="only at the same moment",
          witness=ours(60, 12)),
    Fault("stream-piece-of-another-each-20", "G", "In one stream in 20 a piece of another stream's text turns up.",
          {"events": when(each(20), chunks(_leaked))}, rate="1/20 of streams", needs=SLOW,
          witness=lambda ask: any(ask.many(200, lambda number: _exact(ask, number), 8))),
    Fault("previous-prompt-always", "G", "Each request is answered with the prompt of the one before.",
          {"seen": _previous("before")}, witness=ours(12, 1)),
)  # fmt: skip
