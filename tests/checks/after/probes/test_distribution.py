"""Counts of sampled tokens contradict a sampler that does not follow its own probabilities."""

from __future__ import annotations

import pytest

from checks.after.probes.distribution import judge, tails, ways
from checks.vocabulary import Outcome
from tests.support.planted_serving import verdicts


@pytest.mark.parametrize(
    ("probe", "fault"),
    [
        ("sampling-distribution", "temperature-twice"),
        ("sampling-distribution", "top-k-ignored"),
        ("sampling-distribution", "top-p-ignored"),
    ],
)
def test_a_planted_fault_is_found(probe: str, fault: str) -> None:
    found = verdicts(probe, fault=fault)[probe]
    assert found.outcome is Outcome.FAIL, found.message


@pytest.mark.parametrize("probe", ["sampling-distribution"])
def test_a_sound_server_passes(probe: str) -> None:
    found = verdicts(probe)[probe]
    assert found.outcome is Outcome.PASS, found.message


def test_a_count_is_as_likely_as_the_binomial_distribution_says() -> None:
    assert tails(5, 10, 0.5) == pytest.approx(1.0)
    assert tails(0, 10, 0.5) == pytest.approx(2 / 2**10)
    assert tails(64, 64, 0.5) < 1e-15


def test_the_tokens_that_a_limit_leaves() -> None:
    shares = {1: 0.4, 2: 0.3, 3: 0.2, 4: 0.1}
    allowed = {test.name: set(test.allowed) for test in ways(shares)}
    assert (allowed["top_k 2"], allowed["top_p 0.6"], allowed["min_p 0.5"]) == ({1, 2}, {1, 2}, {1, 2, 3})


def test_counts_that_fit_have_no_problem() -> None:
    shares = {1: 0.4, 2: 0.3, 3: 0.2, 4: 0.1}
    plain, colder = ways(shares)[:2]
    assert judge(shares, {1: 26, 2: 19, 3: 13, 4: 6}, plain) == ""
    assert judge(shares, {1: 64}, plain) != ""
    assert judge(shares, {1: 34, 2: 19, 3: 9, 4: 2}, colder) == ""
