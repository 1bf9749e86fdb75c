"""The effect of an argparse action on a flag, standard or the engine's own, and which flags are deprecated."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from checks.engine.source.actions import STANDARD, Action, action_of, deprecation
from tests.support.engine_sources import scope_of

SCOPE = scope_of(
    """
class Deprecated(argparse.Action):
    def __init__(self, option_strings, dest, error_message=None, nargs=0, **kwargs):
        super().__init__(option_strings, dest, nargs=nargs, **kwargs)
class Called(argparse.Action):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, nargs=0, default=False, **kwargs)
class Silent(argparse.Action):
    pass
"""
)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("'store'", Action("store")),
        ("'store_true'", Action("store_true", 0, False)),
        ("'store_false'", Action("store_false", 0, True)),
        ("'count'", Action("count", 0)),
        ("'odd'", Action("odd")),
        ("argparse.BooleanOptionalAction", Action("BooleanOptionalAction", 0, negatable=True)),
        ("Deprecated", Action("Deprecated", 0)),
        ("Called", Action("Called", 0, False)),
        ("Silent", Action("Silent")),
        ("Unheard", Action("Unheard")),
    ],
)
def test_an_action_decides_words_and_default(text: str, action: Action) -> None:
    assert action_of(ast.parse(text, mode="eval").body, SCOPE) == action


def test_without_an_action_a_flag_stores_its_word() -> None:
    assert action_of(None, SCOPE) == STANDARD["store"] == Action("store")


@pytest.mark.parametrize(
    ("text", "action", "got", "deprecated", "instead"),
    [
        ("Note: --old is deprecated. Please use --new instead.", "store", {}, True, "--new"),
        ("NOTE: the `--old` is now deprecated, in favor of `--new`.", "store", {}, True, "--new"),
        ("Deprecated. Alias for --new=x.", "store", {}, True, "--new=x"),
        ("[Deprecated] replaced by --new", "store", {}, True, "--new"),
        ("Does it (deprecated).", "store", {}, True, None),
        ("Deprecated, use --old.", "store", {}, True, None),
        ("Anything.", "DeprecatedAction", {}, True, None),
        ("Anything.", "DeprecatedAction", {"new_flag": "--new"}, True, "--new"),
        ("Deprecated, use --a.", "store", {"error_message": "Use --b."}, True, "--b"),
        ("Replaces the deprecated --grpc-mode.", "store", {}, False, None),
        ("Use --other for more.", "store", {}, False, None),
        ("", "store", {}, False, None),
    ],
)
def test_a_flag_is_deprecated_by_its_own_help_or_action(
    text: str, action: str, got: dict[str, Any], deprecated: bool, instead: str | None
) -> None:
    assert deprecation(["--old"], text, Action(action), got) == (deprecated, instead)
