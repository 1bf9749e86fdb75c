"""Scripts that compare log-probabilities and answers with a baseline run of the same weights under other settings.

Log-probabilities of a fixed text are a finer measure than words: KL per token over the most likely tokens separates a
harmless change of kernel (about 0.001 nats) from a lost scale (tenths). Greedy answers show what users would see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, isfinite, log
from typing import Any

from msgspec.structs import replace

from checks.after.measures.intervals import mean_interval
from checks.after.probes.asking import with_or_without_logprobs
from checks.after.probes.basic import garbage
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Measured, Script, error_text, failed_requests, quote, verdict
from checks.after.probes.expect import or_default
from checks.after.probes.requests import agreement, generate
from checks.after.probes.texts import long_text, short_prompts
from checks.vocabulary import Outcome, Verdict

Samples = Mapping[str, tuple[float, ...]]
MOST_MASS = 1.01
# Texts of other kinds than prose: damage to weights or caches often shows in one kind first.
_CODE = """def mean(values):
    total = 0
    for value in values:
        total += value
    return total / len(values)


class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)
"""
_SUMS = """If x + 3 = 7 then x = 4. The area of a circle of radius 2 is 4 times pi, about 12.57. 12 times 12 is 144, and
half of 144 is 72. The square root of 81 is 9. A train that runs 60 km in 45 minutes runs 80 km in an hour."""
Row = Mapping[int, float]  # token id → log-probability of the most likely tokens at one position


def fingerprint(probe: Probe, context: Context) -> Script:
    """Measure the KL divergence per token from the baseline over the top tokens at each position of a fixed text."""
    keep = probe.count("top", 8)
    texts = [probe.text("prompt") + " " + long_text(probe.count("tokens", 120), 5), _CODE, _SUMS]
    asks = [generate(text, 1, logprobs=True) for text in (*texts, long_text(_within(context), 6))]
    starts = [0] * len(texts) + [_within(context) * 3 // 4]  # of the long text, only what has a long past
    answers = yield [
        replace(ask, payload={**(ask.payload or {}), "logprob_start_len": start, "top_logprobs_num": keep})
        for ask, start in zip(asks, starts, strict=True)
    ]
    answer = answers[0]
    if answer.status == 400 and "logprob" in error_text(answer).lower():
        return verdict(probe.id, Outcome.SKIP, "this configuration cannot return log-probabilities")
    if bad := failed_requests(probe.id, answers):
        return bad
    rows = [row for item in answers for row in read_rows(item.meta.get("input_top_logprobs"))]
    if len(rows) < 8:
        return verdict(probe.id, Outcome.SKIP, "the server returns no top log-probabilities", [quote(answer)])
    samples = _flatten(rows)
    before = stored_rows(context.baseline.samples.get(probe.id, {}) if context.baseline else {})
    if not before:
        message = f"{len(rows)} positions recorded only: there is no baseline to compare them with"
        return Measured(verdict=verdict(probe.id, Outcome.SKIP, message), samples=samples)
    return Measured(verdict=judge_rows(probe, context, before, rows), samples=samples)


def _within(context: Context) -> int:
    """Return the tokens of the long text: what fits into half of the context, 2,000 at most."""
    return min(2000, (context.server.context or 4096) // 2)


def judge_rows(probe: Probe, context: Context, before: Sequence[Row], now: Sequence[Row]) -> Verdict:
    """Return the verdict on two sets of top log-probabilities of the same text."""
    if len(before) != len(now):
        message = f"the text has {len(before)} positions in the baseline, {len(now)} now: the tokenizer differs"
        return verdict(probe.id, Outcome.FAIL, message)
    if above := sum(mass(row) > MOST_MASS for row in now):
        message = f"the probabilities of the top tokens add up to more than 1 at {above} of {len(now)} positions"
        return verdict(probe.id, Outcome.FAIL, message, positions=len(now))
    divergences = [kl(old, new) for old, new in zip(before, now, strict=True)]
    mean = mean_interval(divergences)
    swapped = sum(1 for old, new in zip(before, now, strict=True) if max(old, key=lambda i: old[i]) not in new)
    most = or_default(context.expect.fingerprint.kl_at_most, probe.number("kl_at_most", 0.03))
    message = f"KL {mean.value:.4f} nats per token ({mean.low:.4f} to {mean.high:.4f}), at most {most:g} is accepted"
    outcome = Outcome.INCONCLUSIVE
    if mean.high <= most:
        outcome = Outcome.PASS
    elif mean.low > most:
        outcome = Outcome.FAIL
    return verdict(probe.id, outcome, message, kl=round(mean.value, 5), lost_tops=swapped, positions=len(now))


def mass(row: Row) -> float:
    """Return the sum of the probabilities in a row: at most 1, but for rounding."""
    return sum(map(exp, row.values()))


def kl(old: Row, new: Row) -> float:
    """Return KL(old ‖ new) in nats over the tokens in `old`, treating the remaining probability as one more token.

    A token missing from `new` gets the smallest log-probability that `new` lists, so the result is a lower bound.
    """
    smallest = min(new.values())
    rest_old, rest_new = 1.0, 1.0
    total = 0.0
    for token, value in old.items():
        other = new.get(token, smallest)
        total += exp(value) * (value - other)
        rest_old -= exp(value)
        rest_new -= exp(other)
    if rest_old > 1e-6 and rest_new > 1e-6:
        total += rest_old * log(rest_old / rest_new)
    return max(0.0, total)


def read_rows(items: Any) -> list[Row]:
    """Parse a reply's `input_top_logprobs`: [logprob, id, text] of the likeliest tokens; skips empty positions."""
    rows: list[Row] = []
    for item in items or ():
        row = {
            int(entry[1]): float(entry[0])
            for entry in item or ()
            if isinstance(entry, list) and isinstance(entry[0], int | float) and isfinite(entry[0])
        }
        if row:
            rows.append(row)
    return rows


def greedy_baseline(probe: Probe, context: Context) -> Script:
    """Check that the baseline's greedy prompts give the same tokens again, up to a tolerated share."""
    prompts, tokens = short_prompts()[: probe.count("prompts", 12)], probe.count("max_tokens", 24)
    answers = yield from with_or_without_logprobs([generate(prompt, tokens, logprobs=True) for prompt in prompts])
    if bad := failed_requests(probe.id, answers) or garbage(probe, answers):
        return bad
    samples: dict[str, tuple[float, ...]] = {}
    for index, answer in enumerate(answers):
        samples[f"ids_{index}"] = tuple(float(item) for item in answer.ids)
        samples[f"logprobs_{index}"] = tuple(0.0 if item is None else item for item in answer.logprobs)
    before = stored_answers(context.baseline.samples.get(probe.id, {}) if context.baseline else {}, len(prompts))
    if not any(answer.ids for answer in before):
        message = f"{len(prompts)} answers recorded only: there is no baseline to compare them with"
        return Measured(verdict=verdict(probe.id, Outcome.SKIP, message), samples=samples)
    return Measured(verdict=judge_answers(probe, before, answers), samples=samples)


def judge_answers(probe: Probe, before: Sequence[Answer], now: Sequence[Answer]) -> Verdict:
    """Return the verdict on greedy answers to the same prompts, in the baseline and now."""
    results = [agreement(old, new) for old, new in zip(before, now, strict=True)]
    differing = [index for index, result in enumerate(results) if not result.close]
    share, tolerance = len(differing) / len(results), probe.number("tolerance", 0.1)
    message = (
        f"{len(differing)} of {len(results)} greedy answers differ from the baseline; {tolerance:.0%} is tolerated"
    )
    outcome = Outcome.PASS if share <= tolerance else Outcome.FAIL if share > 3 * tolerance else Outcome.INCONCLUSIVE
    return verdict(probe.id, outcome, message, [quote(now[index]) for index in differing[:3]], parted=share)


def stored_answers(samples: Samples, count: int) -> list[Answer]:
    """Return `count` answers of a baseline as `greedy_baseline` stores them; missing answers are empty."""
    return [
        Answer(
            path="baseline",
            ids=tuple(int(item) for item in samples.get(f"ids_{index}", ())),
            logprobs=samples.get(f"logprobs_{index}", ()),
        )
        for index in range(count)
    ]


def stored_rows(samples: Samples) -> list[Row]:
    """Return the rows of a baseline as `fingerprint` stores them."""
    ids, values = samples.get("ids", ()), samples.get("logprobs", ())
    rows: list[Row] = []
    start = 0
    for size in map(int, samples.get("sizes", ())):
        end = start + size
        rows.append(dict(zip(map(int, ids[start:end]), values[start:end], strict=True)))
        start = end
    return rows


def _flatten(rows: Sequence[Row]) -> dict[str, tuple[float, ...]]:
    return {
        "sizes": tuple(float(len(row)) for row in rows),
        "ids": tuple(float(token) for row in rows for token in row),
        "logprobs": tuple(value for row in rows for value in row.values()),
    }
