"""Intervals and comparisons for small samples: Wilson, bootstrap of medians, paired proportions, sample sizes.

Pure arithmetic without numpy and without chance: the bootstrap draws from a seeded generator, so that the same
measurements always give the same verdict. What the numbers mean is decided in `accuracy` and `performance`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import ceil, inf, sqrt
from statistics import NormalDist, median

from msgspec import Struct

LEVEL = 0.95
RESAMPLES = 1000


class Interval(Struct, frozen=True, kw_only=True):
    """An estimate with its confidence interval, all in the same unit."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the interval: how far off the estimate may be."""
        return (self.high - self.low) / 2


def z_score(level: float = LEVEL) -> float:
    """Two-sided quantile of the normal distribution: 1.96 for 0.95."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def wilson(successes: int, n: int, level: float = LEVEL) -> Interval:
    """Wilson score interval of a proportion; 0..1 when n is 0. Holds its level at 0 and at n successes too."""
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return Interval(value=0.0, low=0.0, high=1.0)
    z, share = z_score(level), successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    spread = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - spread)
    high = 1.0 if successes == n else min(1.0, centre + spread)
    return Interval(value=share, low=low, high=high)


def difference(first: tuple[int, int], second: tuple[int, int], level: float = LEVEL) -> Interval:
    """`second` minus `first`, two independent proportions as (successes, n): Newcombe's hybrid of Wilson intervals."""
    a, b = wilson(*first, level=level), wilson(*second, level=level)
    delta = b.value - a.value
    return Interval(
        value=delta,
        low=delta - sqrt((b.value - b.low) ** 2 + (a.high - a.value) ** 2),
        high=delta + sqrt((b.high - b.value) ** 2 + (a.value - a.low) ** 2),
    )


def paired_difference(before: Sequence[bool], after: Sequence[bool], level: float = LEVEL) -> Interval:
    """`after` minus `before` on the same questions: Agresti-Min, which adds half a count to each of the four cells.

    Only questions answered differently carry information, so this is far narrower than `difference`.
    """
    if len(before) != len(after):
        raise ValueError(f"{len(before)} answers before, {len(after)} after: not the same questions")
    n = len(before)
    if n == 0:
        return Interval(value=0.0, low=-1.0, high=1.0)
    gained = sum(1 for a, b in zip(before, after, strict=True) if b and not a)
    lost = sum(1 for a, b in zip(before, after, strict=True) if a and not b)
    g, x, total = gained + 0.5, lost + 0.5, n + 2
    centre = (g - x) / total
    spread = z_score(level) * sqrt(g + x - (g - x) ** 2 / total) / total
    return Interval(value=(gained - lost) / n, low=max(-1.0, centre - spread), high=min(1.0, centre + spread))


def questions_to_decide(share: float, gap: float, level: float = LEVEL) -> int | None:
    """How many questions separate a proportion `share` from a bound that lies `gap` away; None when gap is 0.

    The Wilson half width at n is solved for by steps of a tenth, which is as exact as the guess of `share` deserves.
    """
    if abs(gap) < 1e-9:
        return None
    n = 10
    while n < 1_000_000:
        here = wilson(round(share * n), n, level)
        reach = here.value - here.low if gap > 0 else here.high - here.value
        if reach < abs(gap):
            return n
        n = ceil(n * 1.1)
    return None


def median_interval(samples: Sequence[float], level: float = LEVEL) -> Interval:
    """Median with its bootstrap interval. One sample has an infinite interval: it says nothing about noise."""
    if not samples:
        raise ValueError("no samples")
    middle = median(samples)
    if len(samples) == 1:
        return Interval(value=middle, low=-inf, high=inf)
    return _bootstrap(middle, lambda rng: median(_draw(samples, rng)), level)


def ratio_interval(base: Sequence[float], now: Sequence[float], level: float = LEVEL) -> Interval:
    """Median of `now` over the median of `base` (1.0 = unchanged), with its bootstrap interval."""
    if not base or not now:
        raise ValueError("no samples")
    if median(base) <= 0:
        raise ValueError("the base of a ratio must be positive")
    value = median(now) / median(base)
    if len(base) == 1 or len(now) == 1:
        return Interval(value=value, low=0.0, high=inf)
    return _bootstrap(value, lambda rng: median(_draw(now, rng)) / median(_draw(base, rng)), level)


def paired_ratio_interval(base: Sequence[float], now: Sequence[float], level: float = LEVEL) -> Interval:
    """Median of `now[i] / base[i]` for pairs measured in turn: what drifts on both sides cancels out."""
    if len(base) != len(now):
        raise ValueError(f"{len(base)} and {len(now)} samples are no pairs")
    if min(base, default=0.0) <= 0:
        raise ValueError("the base of a ratio must be positive")
    return median_interval([later / earlier for earlier, later in zip(base, now, strict=True)], level)


def mean_interval(samples: Sequence[float], level: float = LEVEL) -> Interval:
    """Mean with its bootstrap interval."""
    if not samples:
        raise ValueError("no samples")
    mean = sum(samples) / len(samples)
    return _bootstrap(mean, lambda rng: sum(_draw(samples, rng)) / len(samples), level)


def _bootstrap(value: float, statistic: Callable[[random.Random], float], level: float) -> Interval:
    rng = random.Random(20261129)
    drawn = sorted(statistic(rng) for _ in range(RESAMPLES))
    tail = (1 - level) / 2
    low, high = drawn[int(tail * RESAMPLES)], drawn[min(RESAMPLES - 1, int((1 - tail) * RESAMPLES))]
    return Interval(value=value, low=min(low, value), high=max(high, value))


def _draw(samples: Sequence[float], rng: random.Random) -> list[float]:
    return rng.choices(samples, k=len(samples))
