"""The states of a run: which of them say that something may still run on the host."""

import pytest

from launcher.run.state import ACTIVE, State


@pytest.mark.parametrize("state", State)
def test_a_run_is_active_until_it_has_ended(state: State) -> None:
    """A stalled run, and one that ran out of time, still hold their port."""
    ended = state in {State.REFUSED, State.CRASHED, State.STOPPED, State.LOST}
    assert (state in ACTIVE) is not ended


def test_a_state_is_stored_as_its_word_and_read_back() -> None:
    assert [State(str(state)) for state in State] == list(State)
    with pytest.raises(ValueError, match="exploded"):
        State("exploded")
