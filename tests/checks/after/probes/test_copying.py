"""Text that something changes on its way is found by what comes back, or by its count."""

from __future__ import annotations

import pytest

from checks.vocabulary import Outcome
from tests.support.planted_serving import verdicts


@pytest.mark.parametrize(
    ("probe", "fault"),
    [
        ("exact-copies", "html-escaped"),
        ("exact-copies", "quotes-dropped"),
        ("token-counts", "prompt-tokens-zero"),
    ],
)
def test_a_planted_fault_is_found(probe: str, fault: str) -> None:
    found = verdicts(probe, fault=fault)[probe]
    assert found.outcome is Outcome.FAIL, found.message


@pytest.mark.parametrize("probe", ["exact-copies", "token-counts"])
def test_a_sound_server_passes(probe: str) -> None:
    found = verdicts(probe)[probe]
    assert found.outcome is Outcome.PASS, found.message
