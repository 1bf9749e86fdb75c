"""Errors that a user can act on: each has a message, a place and a hint, and an exit code of its own choice."""

from __future__ import annotations

import pickle

import pytest

from launcher import errors
from launcher.cli.exits import Exit, of_error
from launcher.errors import LauncherError

KINDS = [item for item in vars(errors).values() if isinstance(item, type) and issubclass(item, LauncherError)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_keeps_message_place_and_hint(kind: type[LauncherError]) -> None:
    error = kind("it broke", where="p.yaml:1:2", hint="`launch list` lists them")
    assert (error.message, error.where, error.hint) == ("it broke", "p.yaml:1:2", "`launch list` lists them")
    assert str(error) == "it broke"


def test_place_and_hint_may_be_left_out_and_are_only_taken_by_name() -> None:
    error = LauncherError("it broke")
    assert (error.where, error.hint) == ("", "")
    with pytest.raises(TypeError):
        LauncherError("it broke", "p.yaml:1:2")  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not LauncherError], ids=lambda kind: kind.__name__)
def test_no_expected_error_counts_as_a_bug_of_the_launcher(kind: type[LauncherError]) -> None:
    """Each class is in the table of exit codes: the fallback for a class that is not there would claim a bad run."""
    assert of_error(kind("it broke")) not in (Exit.BUG, Exit.BAD, Exit.OK)


def test_a_hint_survives_the_way_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(LauncherError("it broke", where="here", hint="do that")))
    assert (error.message, error.where, error.hint) == ("it broke", "here", "do that")
