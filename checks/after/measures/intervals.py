"""Intervals and comparisons for small samples: Wilson, bootstrap of medians, paired proportions, sample sizes.

Pure, deterministic arithmetic without numpy: the bootstrap draws from a seeded generator, so the same measurements
always give the same verdict. `probes.accuracy` and `probes.speed` decide what the numbers mean.
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
        """Half the width of the interval: the uncertainty of the estimate."""
        return (self.high - self.low) / 2


def z_score(level: float = LEVEL) -> float:
    """Return the two-sided quantile of the normal distribution: 1.96 for 0.95."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def wilson(successes: int, n: int, level: float = LEVEL) -> Interval:
    """Return the Wilson score interval of a proportion; 0..1 when n is 0. It keeps its level at 0 and n successes.

    Raises ValueError unless 0 <= successes <= n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials are impossible")
    if n == 0:
        return Interval(value=0.0, low=0.0, high=1.0)
    z, share = z_score(level), successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    spread = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - spread)
    high = 1.0 if successes == n else min(1.0, centre + spread)
    return Interval(value=share, low=low, high=high)


def difference(first: tuple[int, int], second: tuple[int, int], level: float = LEVEL) -> Interval:
    """Return `second` minus `first`, two independent proportions (successes, n): Newcombe's hybrid Wilson interval."""
    a, b = wilson(*first, level=level), wilson(*second, level=level)
    delta = b.value - a.value
    return Interval(
        value=delta,
        low=delta - sqrt((b.value - b.low) ** 2 + (a.high - a.value) ** 2),
        high=delta + sqrt((b.high - b.value) ** 2 + (a.value - a.low) ** 2),
    )


def paired_difference(before: Sequence[bool], after: Sequence[bool], level: float = LEVEL) -> Interval:
    """Return `after` minus `before` on the same questions: Agresti-Min, which adds 0.5 to each of the four cells.

    Only questions answered differently carry information, so this interval is far narrower than that of `difference`.
    Raises ValueError when the lengths differ.
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
    """Return how many questions separate a proportion `share` from a bound at distance `gap`; None when gap is 0.

    Also None above a million questions. n grows in steps of 10 % until the Wilson interval is narrow enough, which is
    as precise as the estimate of `share` allows.
    """
    if abs(gap) < 1e-9:
        return None
    n = 10
    while n < 1_000_000:
        interval = wilson(round(share * n), n, level)
        reach = interval.value - interval.low if gap > 0 else interval.high - interval.value
        if reach < abs(gap):
            return n
        n = ceil(n * 1.1)
    return None


def median_interval(samples: Sequence[float], level: float = LEVEL) -> Interval:
    """Return the median with its bootstrap interval; one sample has an infinite interval, as its noise is unknown.

    Raises ValueError without samples.
    """
    if not samples:
        raise ValueError("no samples")
    middle = median(samples)
    if len(samples) == 1:
        return Interval(value=middle, low=-inf, high=inf)
    return _bootstrap(middle, lambda rng: median(_draw(samples, rng)), level)


def ratio_interval(base: Sequence[float], now: Sequence[float], level: float = LEVEL) -> Interval:
    """Return the median of `now` over the median of `base` (1.0 = unchanged), with its bootstrap interval.

    Raises ValueError without samples, and when the median of `base` is not positive.
    """
    if not base or not now:
        raise ValueError("no samples")
    if median(base) <= 0:
        raise ValueError("the base of a ratio must be positive")
    value = median(now) / median(base)
    if len(base) == 1 or len(now) == 1:
        return Interval(value=value, low=0.0, high=inf)
    return _bootstrap(value, lambda rng: median(_draw(now, rng)) / median(_draw(base, rng)), level)


def paired_ratio_interval(base: Sequence[float], now: Sequence[float], level: float = LEVEL) -> Interval:
    """Return the median of `now[i] / base[i]` for pairs measured in turn: drift common to both sides cancels out.

    Raises ValueError when the lengths differ, without samples, and when a sample of `base` is not positive.
    """
    if len(base) != len(now):
        raise ValueError(f"{len(base)} and {len(now)} samples cannot be paired")
    if min(base, default=0.0) <= 0:
        raise ValueError("the base of a ratio must be positive")
    return median_interval([later / earlier for earlier, later in zip(base, now, strict=True)], level)


def mean_interval(samples: Sequence[float], level: float = LEVEL) -> Interval:
    """Return the mean with its bootstrap interval. Raises ValueError without samples."""
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
