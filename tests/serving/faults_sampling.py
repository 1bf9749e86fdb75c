"""A. Sampling: whoever asks only for the likeliest tokens never sees these."""

from __future__ import annotations

import math
import random
from typing import Any

from tests.serving import vocabulary
from tests.serving.damage import salad, setting, without
from tests.serving.distribution import Distribution, draw
from tests.serving.planting import At, Fault, both, each, greedy, sampled, when
from tests.serving.witness import OPEN, odd_text, said, unequal, varies

CODE = "What is 17 plus 25? Answer with the number only."


def _flattened(dist: Distribution, at: At) -> Distribution:
    """Take the root of all probabilities, as a temperature applied twice does."""
    total = sum(math.sqrt(share) for share in dist.shares.values())
    return Distribution({token: math.sqrt(share) / total * 0.9 for token, share in dist.shares.items()}, 0.1, dist.key)


def _second(token: int, at: At) -> int:
    """Take the second best token."""
    walk = at.running.walk
    assert walk is not None
    best = walk.expect().top(2)
    return best[-1][1]


def _warmed(token: int, at: At) -> int:
    """Sample although the likeliest token was asked for."""
    walk, job = at.running.walk, at.running
    assert walk is not None
    params = job.params
    params.temperature = 1.3
    chosen = draw(walk.expect(), params, job.rng)
    params.temperature = 0.0
    return chosen


def _neighbours(params: Any, at: At) -> Any:
    """Take the temperature of the request that came before."""
    own = params.temperature
    params.temperature = at.memory.get("temperature", own)
    at.memory["temperature"] = own
    return params


def _leaking(params: Any, at: At) -> Any:
    """Keep a repetition penalty for the requests after the one that asked for it."""
    if params.repetition != 1:
        at.memory["repetition"] = params.repetition
    params.repetition = at.memory.get("repetition", params.repetition)
    return params


def _tail(token: int, at: At) -> int:
    """Let a token of the far tail through, as a sampler without a guard for rounding does."""
    return vocabulary.WORDS[(token * 31 + len(at.running.out)) % len(vocabulary.WORDS)]


def _scattered(token: int, at: At) -> int:
    return salad(token, at) if len(at.running.out) % 6 == 5 else token


def _reseeded(ids: Any, at: At) -> Any:
    if at.call.body.get("n"):
        at.running.rng = random.Random(str(at.call.number))
    return ids


def _mixed(at: At) -> bool:
    return any(job.params.temperature <= 1e-5 for job in at.state.scheduler.running)


def _repeats(text: str) -> bool:
    """Return whether the same words come again and again."""
    words = text.split()
    return any(
        words[place : place + 3] == words[place + 3 : place + 6] or len(set(words[place : place + 5])) == 1
        for place in range(len(words) - 6)
    )


def _salted(ask: Any, number: int) -> bool:
    from tests.serving.witness import strange

    if number % 2:
        ask.say(OPEN, max_tokens=150, ignore_eos=True)
        return False
    return strange(ask.say(f"{OPEN} ({number})", temperature=0.7, max_tokens=150, ignore_eos=True)) > 0.15


FAULTS = (
    Fault("sampled-salad", "A", "Every sampled token is any word.", {"token": when(sampled, salad)},
          witness=odd_text(temperature=0.8)),
    Fault("sampled-salad-each-20", "A", "One sampled request in 20 is word salad.",
          {"token": when(both(sampled, each(20)), salad)}, rate="1/20 of sampled",
          witness=odd_text(temperature=0.8, count=120, at_once=8)),
    Fault("temperature-ignored", "A", "Sampling takes the likeliest token whatever the temperature.",
          {"params": setting(temperature=0.0)}, witness=varies()),
    Fault("temperature-inverted", "A", "Logits are multiplied by the temperature instead of divided.",
          {"params": when(sampled, setting(temperature=lambda value: 1 / value))},
          witness=odd_text(temperature=0.3, count=6)),
    Fault("temperature-twice", "A", "The distribution is flattened once more than asked for.",
          {"dist": when(sampled, _flattened)}, witness=odd_text(temperature=0.9, count=6)),
    Fault("top-p-ignored", "A", "`top_p` has no effect.", {"params": setting(top_p=1.0)},
          witness=unequal({"temperature": 1.2, "top_p": 0.001}, {"temperature": 0}, count=5)),
    Fault("top-k-ignored", "A", "`top_k` has no effect.", {"params": setting(top_k=-1)},
          witness=unequal({"temperature": 1.2, "top_k": 1}, {"temperature": 0}, count=5)),
    Fault("min-p-ignored", "A", "`min_p` has no effect.", {"params": setting(min_p=0.0)},
          witness=unequal({"temperature": 1.2, "min_p": 0.999}, {"temperature": 0}, count=5)),
    Fault("n-identical", "A", "The answers to one request with `n` are the same text.",
          {
              "params": lambda params, at: (
                  setting(seed=at.call.number)(params, at) if at.call.body.get("n") else params
              ),
              "seen": _reseeded,
          },
          witness=lambda ask: (
              len({c["message"]["content"] for c in ask.chat(OPEN, n=5, temperature=1, max_tokens=60)["choices"]}) < 2
          )),
    Fault("seed-ignored", "A", "The same seed gives different answers.", {"params": setting(seed=None)},
          witness=unequal({"temperature": 1.0, "seed": 42}, count=4)),
    Fault("seed-for-all", "A", "All requests are sampled with the same seed.", {"params": setting(seed=1)},
          witness=varies(count=6)),
    Fault("greedy-warm-each-15", "A", "One greedy request in 15 is sampled.",
          {"token": when(both(greedy, each(15)), _warmed)}, rate="1/15", witness=unequal({"temperature": 0}, count=90)),
    Fault("second-best-each-50", "A", "One request in 50 begins with the second best token instead of the best.",
          {"token": lambda token, at: _second(token, at) if len(at.running.out) == 0 and each(50)(at) else token},
          rate="1/50", witness=unequal({"temperature": 0}, count=260)),
    Fault("logit-bias-ignored", "A", "`logit_bias` has no effect.", {"body": without("logit_bias")},
          witness=said(lambda text: "42" in text, CODE, logit_bias={str(vocabulary.encode("4")[0]): -100})),
    Fault("frequency-penalty-reversed", "A", "A frequency penalty makes repetitions likelier.",
          {"params": setting(frequency=lambda value: -2 * value, presence=lambda value: -value)},
          witness=lambda ask: _repeats(
              ask.say(OPEN, frequency_penalty=1.5, temperature=0.7, max_tokens=400, ignore_eos=True)
          )),
    Fault("repetition-penalty-stays", "A", "A repetition penalty stays for the requests that follow.",
          {"params": _leaking},
          witness=lambda ask: ask.say(OPEN) != (ask.say(OPEN, repetition_penalty=1.9, max_tokens=8), ask.say(OPEN))[1]),
    Fault("temperature-of-neighbour", "A", "A request is sampled with the temperature of the one before it.",
          {"params": _neighbours},
          witness=lambda ask: (
              len(
                  {(ask.say(OPEN, temperature=1.4, max_tokens=20), ask.say(OPEN, max_tokens=60))[1] for _ in range(6)}
              )
              > 1
          )),
    Fault("far-tail-each-30", "A", "One sampled token in 30 comes from the far tail of the distribution.",
          {
              "token": lambda token, at: (
                  _tail(token, at) if sampled(at) and (len(at.running.out) + at.call.number) % 30 == 7 else token
              )
          }, rate="1/30 of tokens", witness=odd_text(temperature=0.2, count=12, limit=0.06)),
    Fault("sampled-beside-greedy", "A", "Sampled requests that run beside greedy ones are salted with any words.",
          {"token": lambda token, at: _scattered(token, at) if sampled(at) and _mixed(at) else token},
          rate="only in mixed batches",
          witness=lambda ask: any( ask.many(24, lambda number: _salted(ask, number), 8), )),
    Fault("high-temperature-crash", "A", "At temperatures above 1.2 the sampler returns the token 0 for ever.",
          {"token": lambda token, at: vocabulary.WORDS[0] if at.running.params.temperature > 1.2 else token},
          witness=lambda ask: _repeats(ask.say(OPEN, temperature=1.3, max_tokens=80))),
)  # fmt: skip
