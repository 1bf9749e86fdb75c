"""Sampling faults that no greedy answer shows are found; a sound sampler passes."""

from __future__ import annotations

import pytest

from checks.vocabulary import Outcome
from tests.support.planted_serving import verdicts


@pytest.mark.parametrize(
    ("probe", "fault"),
    [
        ("sampled", "sampled-salad"),
        ("sampled", "n-identical"),
        ("sampling-limits", "logit-bias-ignored"),
        ("prefill-equals-decode", "logprobs-halved"),
        ("prefill-equals-decode", "layers-swapped"),
    ],
)
def test_a_planted_fault_is_found(probe: str, fault: str) -> None:
    found = verdicts(probe, fault=fault)[probe]
    assert found.outcome is Outcome.FAIL, found.message


@pytest.mark.parametrize("probe", ["sampled", "sampling-limits", "penalties", "prefill-equals-decode"])
def test_a_sound_server_passes(probe: str) -> None:
    found = verdicts(probe)[probe]
    assert found.outcome is Outcome.PASS, found.message
