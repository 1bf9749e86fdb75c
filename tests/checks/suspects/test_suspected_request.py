"""A failure below a function that handles one request points to the request."""

from __future__ import annotations

import pytest

from checks.suspects.clues import Clues, Place
from checks.suspects.suspected_request import suspected_request


def clues(*functions: str, engine: bool = True) -> Clues:
    return Clues(places=tuple(Place(file="srt/a.py", engine=engine, function=name, line=7) for name in functions))


@pytest.mark.parametrize("function", ["process_input_requests", "handle_generate_request", "_tokenize_one_request"])
def test_a_handler_of_requests_anywhere_in_the_stack_points_to_the_request(function: str) -> None:
    suspect = suspected_request(clues("update_weights_from_disk", function, "event_loop_overlap"))
    assert suspect is not None
    assert suspect.setting == "request.contents"
    assert f"`{function}`" in suspect.reasons[0]
    assert suspect.experiments[0].text


def test_a_failing_batch_does_not() -> None:
    assert suspected_request(clues("forward_batch", "run_batch", "event_loop_overlap")) is None
    assert suspected_request(clues("process_input_requests", engine=False)) is None
