"""The probabilities of the next token, and how a sampler draws from them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping

from tests.serving import vocabulary
from tests.serving.prose import unit

LEAST = -1e9


class Distribution:
    """Probabilities of single tokens, and a mass that is spread over all the others."""

    __slots__ = ("key", "shares", "tail")

    def __init__(self, shares: dict[int, float], tail: float = 0.0, key: int = 0) -> None:
        self.shares, self.tail, self.key = shares, tail, key

    def probability(self, token: int) -> float:
        """Return the probability of a token."""
        if (share := self.shares.get(token)) is not None:
            return share
        return self.tail / vocabulary.SIZE * (0.25 + 0.75 * unit(token, self.key))

    def logprob(self, token: int) -> float:
        """Return the natural logarithm of a token's probability."""
        value = self.probability(token)
        return math.log(value) if value > 0 else LEAST

    def top(self, count: int) -> list[tuple[float, int]]:
        """Return the likeliest tokens with their log-probabilities, best first."""
        best = sorted(self.shares.items(), key=lambda item: (-item[1], item[0]))[:count]
        rows = [(math.log(max(share, 1e-30)), token) for token, share in best]
        if len(rows) < count and self.tail > 0:
            others = (token for token in vocabulary.WORDS if token not in self.shares)
            more = [(self.logprob(token), token) for token, _ in zip(others, range(count - len(rows)), strict=False)]
            rows = sorted(rows + more, key=lambda row: (-row[0], row[1]))
        return rows

    def best(self) -> int:
        """Return the likeliest token."""
        return min(self.shares, key=lambda token: (-self.shares[token], token))

    def scaled(self, factor: float, extra_tail: float = 0.0) -> Distribution:
        """Return the same distribution with less in its head and more in its tail."""
        return Distribution(
            {token: share * factor for token, share in self.shares.items()}, self.tail * factor + extra_tail, self.key
        )

    def blurred(self, sigma: float, *salt: object) -> Distribution:
        """Return the distribution with noise of `sigma` nats on its logits, as inexact kernels leave it."""
        noisy = {token: share * math.exp(sigma * gauss(token, self.key, *salt)) for token, share in self.shares.items()}
        total = sum(noisy.values()) + self.tail
        return Distribution({token: share / total for token, share in noisy.items()}, self.tail / total, self.key)


def gauss(*key: object) -> float:
    """Return a stable number that is distributed normally over the keys."""
    return math.sqrt(-2 * math.log(1e-9 + unit(*key))) * math.cos(2 * math.pi * unit("angle", *key))


class Sampling:
    """The sampling parameters of a request, by their native names."""

    __slots__ = (
        "frequency", "ignore_eos", "limit", "logit_bias", "min_new", "min_p", "presence", "repetition", "seed",
        "skip_special", "stop", "stop_ids", "temperature", "top_k", "top_p", "trim_stop",
    )  # fmt: skip

    def __init__(self, given: Mapping[str, object], default_limit: int = 128) -> None:
        def number(name: str, default: float) -> float:
            value = given.get(name)
            return default if value is None else float(value)  # type: ignore[arg-type]

        stop = given.get("stop")
        ids = given.get("stop_token_ids")
        bias = given.get("logit_bias")
        self.limit = int(number("max_new_tokens", default_limit))
        self.min_new = int(number("min_new_tokens", 0))
        self.temperature = number("temperature", 1.0)
        self.top_p, self.min_p, self.top_k = number("top_p", 1.0), number("min_p", 0.0), int(number("top_k", -1))
        self.frequency, self.presence = number("frequency_penalty", 0.0), number("presence_penalty", 0.0)
        self.repetition = number("repetition_penalty", 1.0)
        self.stop: list[str] = [stop] if isinstance(stop, str) else list(stop) if isinstance(stop, Iterable) else []
        self.stop_ids: list[int] = list(ids) if isinstance(ids, Iterable) else []
        self.ignore_eos = bool(given.get("ignore_eos"))
        self.seed = given.get("sampling_seed")
        self.skip_special = given.get("skip_special_tokens") is not False
        self.trim_stop = not given.get("no_stop_trim")
        self.logit_bias: dict[int, float] = (
            {int(key): float(value) for key, value in bias.items()} if isinstance(bias, Mapping) else {}
        )


def penalised(dist: Distribution, params: Sampling, counts: Mapping[int, int], ended: bool) -> Distribution:
    """Return the distribution after penalties, biases and the ban of the end before the least length."""
    if not (params.frequency or params.presence or params.repetition != 1 or params.logit_bias or ended):
        return dist
    shares = dict(dist.shares)
    for token in params.logit_bias:
        shares.setdefault(token, dist.probability(token))
    if params.frequency < 0 or params.presence < 0:
        for token in counts:
            shares.setdefault(token, dist.probability(token))
    for token, given in shares.items():
        share = given
        if (count := counts.get(token)) is not None:
            share *= math.exp(min(200.0, -params.frequency * count - params.presence))
            if params.repetition != 1:
                # logits are unknown here: the best is taken to have 30
                share *= math.exp((1 / params.repetition - 1) * 30)
        shares[token] = share * math.exp(max(-100.0, min(100.0, params.logit_bias.get(token, 0.0))))
    if ended:
        for token in (vocabulary.END, vocabulary.END_OF_TEXT):
            shares.pop(token, None)
    if shares and max(shares.values()) < dist.tail:
        shares[vocabulary.WORDS[dist.key % len(vocabulary.WORDS)]] = dist.tail / 2
    if not shares:
        shares = {vocabulary.WORDS[dist.key % 40]: 1.0}
    total = sum(shares.values()) + dist.tail
    return Distribution({token: share / total for token, share in shares.items()}, dist.tail / total, dist.key)


def draw(dist: Distribution, params: Sampling, rng: random.Random) -> int:
    """Draw a token as the sampling parameters say."""
    if params.temperature < 1e-5 or params.top_k == 1:
        return dist.best()
    power = 1 / params.temperature
    peak = max(dist.shares.values())
    rows = sorted(((share / peak) ** power, token) for token, share in dist.shares.items() if share > 0)[::-1]
    # tokens of the tail, each with its own share: together they gain as the temperature rises
    tail = vocabulary.SIZE * (max(dist.tail, 1e-300) / vocabulary.SIZE / peak) ** power if dist.tail else 0.0
    total = sum(weight for weight, _ in rows) + tail
    kept: list[tuple[float, int]] = []
    mass = 0.0
    for weight, token in rows:
        if (
            0 < params.top_k <= len(kept)
            or (kept and mass >= params.top_p * total)
            or weight < params.min_p * rows[0][0]
        ):
            tail = 0.0
            break
        kept.append((weight, token))
        mass += weight
    if params.min_p > 0 or 0 < params.top_k <= len(kept) or mass >= params.top_p * total:
        tail = 0.0
    point = rng.random() * (mass + tail)
    for weight, token in kept:
        point -= weight
        if point < 0:
            return token
    return rng.randrange(len(vocabulary.SPECIAL) + 256, vocabulary.SIZE) if tail else kept[-1][1]
