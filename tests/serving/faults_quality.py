"""M. Quality: the server runs as it should, and the model is worse than it was."""

from __future__ import annotations

from typing import Any

from tests.serving import vocabulary
from tests.serving.ability import Answer
from tests.serving.asking import Asker, question
from tests.serving.conversation import Conversation
from tests.serving.damage import mistaken
from tests.serving.distribution import Distribution
from tests.serving.planting import At, Fault, both, greedy, sampled, when
from tests.serving.prose import crc, unit
from tests.serving.witness import OPEN, Witness, any_of, odd_text, said, varies, wrong


def _loss(amount: float) -> Any:
    return lambda loss, at: loss + amount


def _blur(sigma: float, growing: float = 0.0) -> Any:
    """Return a hook that puts noise on logits: the same noise for the same text."""

    def change(dist: Distribution, at: At) -> Distribution:
        job = at.running
        return dist.blurred(sigma + growing * (len(job.ids) + len(job.out)), "quality")

    return change


def _sharpened(power: float) -> Any:
    def change(dist: Distribution, at: At) -> Distribution:
        raised = {token: share**power for token, share in dist.shares.items()}
        tail = vocabulary.SIZE * (dist.tail / vocabulary.SIZE) ** power if dist.tail else 0.0
        total = sum(raised.values()) + tail
        return Distribution({token: share / total for token, share in raised.items()}, tail / total, dist.key)

    return change


def _expert(answer: Answer, at: At) -> Answer:
    """Let one question in eight meet a broken expert: the same ones each time."""
    conversation: Conversation = at.extra
    return mistaken(answer, at) if crc("expert", conversation.last) % 8 == 0 else answer


def _bad_sums(answer: Answer, at: At) -> Answer:
    """Miss the result where a sum carries."""
    return mistaken(answer, at) if answer.core.isdigit() and int(answer.core[-1]) < 3 else answer


def _unverified(token: int, at: At) -> int:
    """Take each seventh drafted token without verifying it."""
    walk = at.running.walk
    if walk is None or unit("draft", at.call.number, len(at.running.out)) > 0.03:
        return token
    rows = walk.expect().top(2)
    return rows[-1][1]


def _letters(ids: list[int], at: At) -> list[int]:
    """Encode prompts with another tokenizer, which splits them into letters."""
    return vocabulary.encode_by_letter(vocabulary.decode(ids))


def _half_tokenizer(ids: list[int], at: At) -> list[int]:
    """Encode with an older tokenizer that lacks the longer words."""
    out: list[int] = []
    for token in ids:
        raw = vocabulary.piece(token)
        out += (
            [token]
            if token < len(vocabulary.SPECIAL) or len(raw) < 7
            else vocabulary.encode_by_letter(raw.decode("utf-8", "replace"))
        )
    return out


def _missing(dist: Distribution, at: At) -> Distribution:
    """Give the last fifth of the vocabulary no probability."""
    edge = int(0.8 * vocabulary.SIZE)
    kept = {token: share for token, share in dist.shares.items() if token < edge}
    return Distribution(kept or dist.shares, dist.tail, dist.key)


def _pirate(name: str, at: At) -> str:
    return "pirate"


def nats(ask: Asker) -> float:
    """Return the mean negative log-probability of a story that the model writes itself."""
    first = ask.native("Question: What is 12 plus 30?\nAnswer:", {"max_new_tokens": 1}, return_logprob=True)
    prompt = "<|im_start|>user\nTell me something about the harbour.<|im_end|>\n<|im_start|>assistant\n"
    made = ask.native(prompt, {"max_new_tokens": 120, "ignore_eos": True}, return_logprob=True)
    rows = made["meta_info"]["output_token_logprobs"] + first["meta_info"]["output_token_logprobs"]
    return -float(sum(row[0] for row in rows)) / len(rows)


_HEALTHY: list[float] = []


def worse(least: float) -> Witness:
    """Return a witness that sees the model less sure of its own text than the healthy one, by so many nats."""

    def look(ask: Asker) -> bool:
        return nats(ask) - healthy() > least

    return look


def healthy() -> float:
    """Return what `nats` is on a healthy server, measured once."""
    if not _HEALTHY:
        from tests.serving.server import serving

        with serving(speed=0) as (url, _state):
            _HEALTHY.append(nats(Asker(url)))
    return _HEALTHY[0]


def _unlike(count: int = 12, **params: Any) -> Witness:
    """Return a witness that sees other greedy stories than those of the healthy server."""

    def look(ask: Asker) -> bool:
        from tests.serving.server import serving

        asked = [f"{OPEN} ({number})" for number in range(count)]
        with serving(speed=0) as (url, _state):
            before = [Asker(url).say(text, max_tokens=200, **params) for text in asked]
        return [ask.say(text, max_tokens=200, **params) for text in asked] != before

    return look


def _misses(count: int, least: float) -> Witness:
    """Return a witness that sees more than a share of simple questions answered wrongly."""
    return lambda ask: (
        sum(expected not in ask.say(text) for text, expected in map(question, range(count))) > least * count
    )


FAULTS = (
    Fault("smaller-model", "M", "A smaller model is served under the same name.",
          {"weaker": _loss(0.55), "dist": _blur(0.5)}, witness=any_of(worse(0.2), wrong(80))),
    Fault("quantised-1-percent", "M", "Weights were quantised too coarsely: 1 % is lost, with little noise.",
          {"weaker": _loss(0.012), "dist": _blur(0.06)}, witness=any_of(worse(0.004), _unlike())),
    Fault("quantised-3-percent", "M", "Weights were quantised too coarsely: 3 % is lost.",
          {"weaker": _loss(0.03), "dist": _blur(0.15)}, witness=any_of(worse(0.01), _unlike())),
    Fault("kv-fp8-without-scales", "M", "The cache is FP8 without scales: noise that grows with the length.",
          {"weaker": lambda loss, at: loss + 0.03 + min(0.1, at.extra / 60_000), "dist": _blur(0.12, 0.00002)},
          rate="grows with the length", witness=any_of(worse(0.01), _unlike())),
    Fault("layers-swapped", "M", "Two layers are in the wrong order.", {"weaker": _loss(0.3), "dist": _blur(0.7)},
          witness=any_of(worse(0.1), wrong(80))),
    Fault("one-layer-missing", "M", "One layer was left out when the weights were loaded.",
          {"weaker": _loss(0.12), "dist": _blur(0.3)}, witness=any_of(worse(0.05), wrong(80), _unlike())),
    Fault("noisy-head", "M", "The last layer runs in a precision that is too low.", {"dist": _blur(0.35)},
          witness=_unlike()),
    Fault("expert-broken", "M", "One expert of eight is broken: the same questions are always wrong.",
          {"answer": _expert}, rate="1/8 of questions", witness=_misses(80, 0.05)),
    Fault("sums-wrong", "M", "Sums that carry come out wrong.", {"answer": _bad_sums}, rate="1/3 of sums",
          witness=_misses(80, 0.05)),
    Fault("draft-unverified", "M", "Three drafted tokens in 100 are taken without being verified.",
          {"token": _unverified}, rate="3/100 of tokens", witness=any_of(wrong(80, least=1), _unlike())),
    Fault("tokenizer-by-letter", "M", "Prompts are encoded with a tokenizer that knows letters only.",
          {"ids": _letters, "weaker": _loss(0.05)},
          witness=lambda ask: ask.chat("hello")["usage"]["prompt_tokens"] > 18),
    Fault("tokenizer-older", "M", "Prompts are encoded with an older tokenizer that lacks longer words.",
          {"ids": _half_tokenizer, "weaker": _loss(0.02)},
          witness=lambda ask: ask.chat("What is the capital of the country together?")["usage"]["prompt_tokens"] > 24),
    Fault("vocabulary-cut", "M", "The last fifth of the vocabulary is never written.", {"dist": _missing},
          rate="only with some words", witness=any_of(_unlike(), wrong(80))),
    Fault("adapter-merged", "M", "An adapter was merged into the weights by mistake.", {"adapter": _pirate},
          witness=said(lambda text: text.startswith("Arr"), "What is the capital of France?")),
    Fault("attention-flattened", "M", "The scale of attention is off: distributions are too flat.",
          {"dist": _sharpened(0.62)}, witness=any_of(worse(0.05), odd_text(temperature=0.9))),
    Fault("attention-sharpened", "M", "The scale of attention is off: distributions are too sharp.",
          {"dist": when(sampled, _sharpened(60.0))}, witness=varies(count=8, distinct=3)),
    Fault("greedy-only-worse", "M", "Greedy decoding uses another kernel, which is off by half a nat.",
          {"dist": when(both(greedy), _blur(0.5))}, rate="only greedy", witness=_unlike()),
)  # fmt: skip
