"""Intervals hold what they promise; the bootstrap is repeatable."""

from __future__ import annotations

import random
from math import ceil, inf, isclose

import pytest

from checks.after.measures.intervals import (
    difference,
    mean_interval,
    median_interval,
    paired_difference,
    paired_ratio_interval,
    questions_to_decide,
    ratio_interval,
    wilson,
)


def test_wilson_agrees_with_published_values() -> None:
    # Brown, Cai, DasGupta 2001 style check values, computed by the closed formula by hand for 8 of 10
    interval = wilson(8, 10)
    assert isclose(interval.low, 0.4902, abs_tol=5e-4)
    assert isclose(interval.high, 0.9433, abs_tol=5e-4)


@pytest.mark.parametrize("successes", [0, 10])
def test_wilson_stays_open_at_the_ends(successes: int) -> None:
    interval = wilson(successes, 10)
    assert 0.0 <= interval.low <= interval.value <= interval.high <= 1.0
    assert interval.half_width > 0.1


def test_wilson_of_nothing_is_everything() -> None:
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0.0, 1.0)


def test_wilson_refuses_more_successes_than_trials() -> None:
    with pytest.raises(ValueError, match="11 successes in 10 trials"):
        wilson(11, 10)


def test_wilson_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = random.Random(1)
    truth, covered = 0.8, 0
    for _ in range(800):
        interval = wilson(sum(rng.random() < truth for _ in range(60)), 60)
        covered += interval.low <= truth <= interval.high
    assert 0.92 <= covered / 800 <= 0.98


def test_paired_difference_is_narrower_than_unpaired() -> None:
    before = [True] * 50 + [False] * 10
    after = [True] * 47 + [False] * 13
    paired, unpaired = paired_difference(before, after), difference((50, 60), (47, 60))
    assert isclose(paired.value, unpaired.value)
    assert paired.half_width < unpaired.half_width / 1.5


def test_paired_difference_of_equal_answers_is_near_zero_but_not_certain() -> None:
    interval = paired_difference([True] * 60, [True] * 60)
    assert interval.value == 0
    assert -0.06 < interval.low < 0 < interval.high < 0.06


def test_paired_difference_refuses_other_questions() -> None:
    with pytest.raises(ValueError, match="not the same questions"):
        paired_difference([True], [True, False])


def test_more_questions_are_needed_for_a_smaller_gap() -> None:
    wide, narrow = questions_to_decide(0.9, 0.1), questions_to_decide(0.9, 0.02)
    assert wide is not None and narrow is not None
    assert wide < 100 < narrow
    assert questions_to_decide(0.9, 0.0) is None


def test_the_number_that_decides_does_decide() -> None:
    need = questions_to_decide(0.9, 0.05)
    assert need is not None
    assert wilson(ceil(0.9 * need), need).low > 0.85


def test_one_sample_says_nothing_about_noise() -> None:
    interval = median_interval([5.0])
    assert (interval.value, interval.low, interval.high) == (5.0, -inf, inf)


def test_bootstrap_gives_the_same_interval_each_time() -> None:
    samples = [98.0, 101.0, 100.0, 99.5, 102.0]
    assert median_interval(samples) == median_interval(samples)
    assert mean_interval(samples) == mean_interval(samples)


def test_ratio_sees_a_tenth_between_quiet_series() -> None:
    base, now = [100.0, 101.0, 99.0, 100.5, 99.5], [90.0, 90.5, 89.0, 91.0, 90.2]
    change = ratio_interval(base, now)
    assert change.high < 0.95
    assert isclose(change.value, 0.902, abs_tol=1e-3)


def test_ratio_of_noisy_series_does_not_exclude_one() -> None:
    change = ratio_interval([100.0, 60.0, 140.0, 80.0, 120.0], [95.0, 130.0, 70.0, 110.0, 85.0])
    assert change.low < 1 < change.high


def test_ratio_needs_a_positive_base() -> None:
    with pytest.raises(ValueError, match="positive"):
        ratio_interval([0.0, 0.0], [1.0, 1.0])


def test_a_drift_that_both_sides_share_does_not_widen_a_paired_ratio() -> None:
    base = [100 * 0.95**index for index in range(10)]
    now = [value * 0.9 for value in base]
    paired, loose = paired_ratio_interval(base, now), ratio_interval(base, now)
    assert isclose(paired.value, 0.9)
    assert paired.half_width < 1e-9
    assert loose.half_width > 0.05


def test_samples_that_are_no_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be paired"):
        paired_ratio_interval([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="positive"):
        paired_ratio_interval([0.0], [1.0])
