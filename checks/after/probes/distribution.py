"""A script that compares sampled tokens with the probabilities that the server itself reports for them.

One prompt is sampled many times for one token. At temperature 1 the counts must fit the reported probabilities, at
another temperature their powers; top-k, top-p and min-p may give only the tokens that they leave. No ability is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp, lgamma, log

from msgspec import Struct

from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Script, failed_requests, quote, verdict
from checks.after.probes.requests import generate
from checks.vocabulary import Outcome

_LISTED = 20  # likely tokens that the server lists
_UNLIKELY = 1e-7  # chance of counts by which a sampler is called wrong: three tests on each validation
_ROUNDING = 0.03  # share of probability by which two kernels may differ at the edge of a cut


class Test(Struct, frozen=True, kw_only=True):
    """One way of sampling: its parameters, and the probabilities that it should give."""

    name: str
    sampling: Mapping[str, float]
    power: float = 1.0  # 1 / temperature
    allowed: frozenset[int] = frozenset()  # empty: all tokens


def sampling_distribution(probe: Probe, _: Context) -> Script:
    """Check sampled first tokens against the reported probabilities, by temperature, top-k, top-p and min-p."""
    prompt, draws = probe.text("prompt"), probe.count("draws", 64)
    ask = generate(prompt, 1, logprobs=True)
    [listed] = yield [Ask(path=ask.path, payload={**(ask.payload or {}), "top_logprobs_num": _LISTED})]
    if not listed.ok:
        return verdict(probe.id, Outcome.SKIP, "this configuration cannot return log-probabilities", [quote(listed)])
    shares = reported(listed)
    if len(shares) < 4 or max(shares.values()) > 0.9:
        return verdict(
            probe.id, Outcome.SKIP, "the first token of the prompt is nearly certain, so nothing can be counted"
        )
    tests = ways(shares)
    answers = yield [_batch(prompt, draws, test) for test in tests]
    if bad := failed_requests(probe.id, answers):
        return bad
    for test, answer in zip(tests, answers, strict=True):
        counts = drawn(answer)
        if sum(counts.values()) < draws // 2:
            return verdict(
                probe.id, Outcome.SKIP, "the server returns no token ids for sampled answers", [quote(answer)]
            )
        if problem := judge(shares, counts, test):
            return verdict(probe.id, Outcome.FAIL, f"{test.name}: {problem}", [quote(answer)])
    return verdict(
        probe.id, Outcome.PASS, f"{draws} draws fit the reported probabilities in {len(tests)} ways of sampling"
    )


def reported(answer: Answer) -> dict[int, float]:
    """Return token → probability of the likeliest first tokens, as the server lists them."""
    rows = answer.meta.get("output_top_logprobs") or [[]]
    return {int(item[1]): exp(item[0]) for item in rows[0] or () if _is_listed(item)}


def _is_listed(item: object) -> bool:
    """Whether an item of a list of likely tokens has a number and a token."""
    return isinstance(item, list) and len(item) > 1 and all(isinstance(part, int | float) for part in item[:2])


def ways(shares: Mapping[int, float]) -> list[Test]:
    """Return the ways of sampling to try on a distribution."""
    ranked = sorted(shares, key=lambda token: -shares[token])
    nucleus = frozenset(_nucleus(ranked, shares, 0.6))
    near = frozenset(token for token in ranked if shares[token] >= 0.5 * shares[ranked[0]] * (1 - _ROUNDING))
    tests = [
        Test(name="temperature 1", sampling={"temperature": 1.0}),
        Test(name="temperature 0.5", sampling={"temperature": 0.5}, power=2.0),
        Test(name="top_k 2", sampling={"temperature": 1.0, "top_k": 2}, allowed=frozenset(ranked[:2])),
        Test(name="top_p 0.6", sampling={"temperature": 1.0, "top_p": 0.6}, allowed=nucleus),
        Test(name="min_p 0.5", sampling={"temperature": 1.0, "min_p": 0.5}, allowed=near),
    ]
    # a nucleus that reaches beyond the listed tokens is not known
    return [test for test in tests if test.allowed != frozenset(ranked)]


def _nucleus(ranked: Sequence[int], shares: Mapping[int, float], mass: float) -> list[int]:
    kept, total = list[int](), 0.0
    for token in ranked:
        if total > mass + _ROUNDING:
            break
        kept.append(token)
        total += shares[token]
    return kept


def _batch(prompt: str, draws: int, test: Test) -> Ask:
    sampling = {"max_new_tokens": 1, **test.sampling}
    return Ask(
        path="/generate", payload={"text": [prompt] * draws, "sampling_params": sampling, "return_logprob": True}
    )


def drawn(answer: Answer) -> Counter[int]:
    """Return how often each token was drawn in the replies to a list of prompts."""
    counts: Counter[int] = Counter()
    for item in answer.body if isinstance(answer.body, list) else ():
        rows = (item.get("meta_info") or {}).get("output_token_logprobs") or ()
        counts.update(int(row[1]) for row in rows[:1] if len(row) > 1)
    return counts


def judge(shares: Mapping[int, float], counts: Mapping[int, int], test: Test) -> str:
    """Return how counts contradict the reported probabilities; empty if they fit."""
    total = sum(counts.values())
    if test.allowed:
        outside = sum(count for token, count in counts.items() if token not in test.allowed)
        return f"{outside} of {total} tokens are outside of the {len(test.allowed)} that it leaves" if outside else ""
    weights = {token: share**test.power for token, share in shares.items()}
    rest = max(0.0, 1 - sum(shares.values()))
    if test.power > 1:
        rest = rest * min(shares.values()) ** (test.power - 1)  # at most: no token outside is likelier than the last
    scale = sum(weights.values()) + rest
    chance = 1.0
    for token, weight in weights.items():
        chance = min(chance, tails(counts.get(token, 0), total, weight / scale))
    if chance < _UNLIKELY:
        return f"the counts of {total} draws do not fit the reported probabilities (chance {chance:.0e})"
    return ""


def tails(count: int, total: int, share: float) -> float:
    """Return the chance of a count as far from its expectation as this one, by the binomial distribution."""
    share = min(max(share, 1e-9), 1 - 1e-9)
    below = sum(_mass(number, total, share) for number in range(count + 1))
    above = sum(_mass(number, total, share) for number in range(count, total + 1))
    return min(1.0, 2 * min(below, above))


def _mass(count: int, total: int, share: float) -> float:
    ways_ = lgamma(total + 1) - lgamma(count + 1) - lgamma(total - count + 1)
    return exp(ways_ + count * log(share) + (total - count) * log(1 - share))
