"""What a server says of itself is held against a known request and against its other reports."""

from __future__ import annotations

import pytest

from checks.vocabulary import Outcome
from tests.support.planted_serving import verdicts


@pytest.mark.parametrize(
    ("probe", "fault"),
    [
        ("reports", "counters-frozen"),
        ("reports", "waiting-never-zero"),
        ("reports", "metrics-nan"),
    ],
)
def test_a_planted_fault_is_found(probe: str, fault: str) -> None:
    found = verdicts(probe, fault=fault)[probe]
    assert found.outcome is Outcome.FAIL, found.message


@pytest.mark.parametrize("probe", ["reports"])
def test_a_sound_server_passes(probe: str) -> None:
    found = verdicts(probe)[probe]
    assert found.outcome is Outcome.PASS, found.message
