"""What goes wrong late in an answer, or far from the end of a prompt, is found."""

from __future__ import annotations

import pytest

from checks.after.probes.lasting import turns_to_salad
from checks.vocabulary import Outcome
from tests.support.planted_serving import verdicts


@pytest.mark.parametrize(
    ("probe", "fault"),
    [
        ("long-prompt-codes", "window-2k"),
        ("long-prompt-codes", "middle-lost-8k"),
    ],
)
def test_a_planted_fault_is_found(probe: str, fault: str) -> None:
    found = verdicts(probe, fault=fault)[probe]
    assert found.outcome is Outcome.FAIL, found.message


@pytest.mark.parametrize("probe", ["long-prompt-codes", "long-answer"])
def test_a_sound_server_passes(probe: str) -> None:
    found = verdicts(probe)[probe]
    assert found.outcome is Outcome.PASS, found.message


def test_an_answer_that_turns_into_salad_is_found_with_its_place() -> None:
    prose = "The ship came into the harbour of the town and it was late for the people that had to be at home by six. "
    salad = (
        "centre shall buy month walk later garden chair iron front twenty cup bear tell boy clear live fog lot kite "
    )
    assert turns_to_salad(prose * 8) == 0
    assert turns_to_salad(prose * 4 + salad * 6) in (80, 120)
    assert turns_to_salad(salad * 12) == 0  # no language at its beginning: other probes judge that
