"""Schemas that a model would not meet by itself, and several calls, show what the grammar and the parser do."""

from __future__ import annotations

import pytest

from checks.vocabulary import Outcome
from tests.support.planted_serving import verdicts


@pytest.mark.parametrize(
    ("probe", "fault"),
    [
        ("rich-schema", "schema-loose"),
        ("several-tools", "tool-name-prefixed"),
        ("several-tools", "tool-choice-required-ignored"),
    ],
)
def test_a_planted_fault_is_found(probe: str, fault: str) -> None:
    found = verdicts(probe, fault=fault)[probe]
    assert found.outcome is Outcome.FAIL, found.message


@pytest.mark.parametrize("probe", ["rich-schema", "several-tools"])
def test_a_sound_server_passes(probe: str) -> None:
    found = verdicts(probe)[probe]
    assert found.outcome is Outcome.PASS, found.message
