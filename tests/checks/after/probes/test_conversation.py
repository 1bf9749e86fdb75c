"""What a conversation promises is kept, and a reply with the word of another request is proof."""

from __future__ import annotations

import pytest

from checks.vocabulary import Outcome
from tests.support.planted_serving import verdicts


@pytest.mark.parametrize(
    ("probe", "fault"),
    [
        ("chat-limits", "chat-stop-ignored"),
        ("system-and-history", "history-dropped"),
        ("conversation", "assistant-turns-dropped"),
        ("conversation", "system-dropped-in-streams"),
        ("every-script", "mojibake-out"),
        ("every-script", "utf8-split-streamed"),
        ("users-apart", "replies-swapped"),
    ],
)
def test_a_planted_fault_is_found(probe: str, fault: str) -> None:
    found = verdicts(probe, fault=fault)[probe]
    assert found.outcome is Outcome.FAIL, found.message


@pytest.mark.parametrize(
    "probe", ["chat-limits", "system-and-history", "conversation", "every-script", "users-apart", "after-a-pause"]
)
def test_a_sound_server_passes(probe: str) -> None:
    found = verdicts(probe)[probe]
    assert found.outcome is Outcome.PASS, found.message
