"""What an upgrade changes: of the whole command line, and of one launch; each kind of change on small schemas."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from checks.before.release_changes import Change, default_changes, diff
from checks.engine.flag_schema import Flag, FlagSchema, load


def schema(*flags: Flag) -> FlagSchema:
    by_name = {name: flag for flag in flags for name in flag.names}
    return replace(load("0.5.9"), flags=flags, by_name=by_name)


def flag(name: str, **declared: Any) -> Flag:
    return Flag(spelled=(f"--{name}",), dest=name.replace("-", "_"), source="x.py:1", **declared)


@pytest.mark.parametrize(
    ("before", "after", "kind", "old", "new"),
    [
        ({"default": 1}, {"default": 2}, "default", "1", "2"),
        ({"default": None}, {"default": 2}, "default", "", "2"),
        ({"choices": ("a", "b")}, {"choices": ("b", "c", "d")}, "choices", "a", "c, d"),
        ({"choices": None}, {"choices": ("a",)}, "choices", "any", "a"),
        ({"choices": ("a",)}, {"choices": None}, "choices", "a", "any"),
        ({"type": "int"}, {"type": "float"}, "type", "int", "float"),
        ({"type": None}, {"type": "int", "nargs": "+"}, "type", "str", "int (+)"),
        ({"type": "int"}, {"nargs": 0}, "type", "int", "switch"),
        ({}, {"required": True}, "required", "False", "True"),
        ({}, {"deprecated": True, "replacement": "--y"}, "deprecated", "", "--y"),
    ],
)
def test_each_kind_of_change_says_what_was_and_what_is(
    before: dict[str, Any], after: dict[str, Any], kind: str, old: str, new: str
) -> None:
    [change] = diff(schema(flag("x-y", **before)), schema(flag("x-y", **after)))
    assert (change.kind, change.flag, change.before, change.after) == (kind, "x-y", old, new)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"choices": ("a", "b")}, {"choices": ("b", "a")}),
        ({"help": "old words"}, {"help": "new words"}),
        ({"deprecated": True}, {"deprecated": True}),
        ({"deprecated": True}, {}),
    ],
)
def test_what_changes_nothing_for_a_user_is_no_change(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert diff(schema(flag("x-y", **before)), schema(flag("x-y", **after))) == []


def test_an_option_comes_with_its_words_and_goes_with_its_successor() -> None:
    assert diff(schema(), schema(flag("x-y", default=3, help="New."))) == [
        Change(kind="added", flag="x-y", after="3", note="New.")
    ]
    assert diff(schema(flag("x-y", default=3)), schema()) == [Change(kind="removed", flag="x-y", before="3")]
    [gone] = diff(schema(flag("enable-dp-attention")), schema())
    assert (gone.after, "removal" in gone.note) == ("--attn-dp-size <dp-size>", True)


def test_of_two_options_of_one_meaning_the_one_that_stays_speaks() -> None:
    old, new = flag("mamba-scheduler-strategy", deprecated=True), flag("mamba-radix-cache-strategy", default="auto")
    for order in ((old, new), (new, old)):
        assert diff(schema(*order), schema(new)) == []


def test_a_rename_is_no_removal() -> None:
    changes = {(c.kind, c.flag) for c in diff(load("0.5.13"), load("0.5.14"))}
    assert ("renamed", "mamba-radix-cache-strategy") in changes
    assert not {("removed", "mamba-radix-cache-strategy"), ("added", "mamba-radix-cache-strategy")} & changes


def test_a_changed_default_is_told() -> None:
    changes = [c for c in diff(load("0.5.7"), load("0.5.8")) if c.flag == "load-balance-method" and c.kind == "default"]
    assert [(c.before, c.after) for c in changes] == [("round_robin", "auto")]


def test_changed_choices_are_told() -> None:
    changes = [c for c in diff(load("0.5.19"), load("0.5.20")) if c.flag == "attention-backend"]
    assert [(c.kind, c.before, c.after) for c in changes] == [("choices", "cutlass_mla, dual_chunk_flash_attn", "qsa")]


def test_a_changed_default_matters_where_the_flag_is_left_out() -> None:
    old, new = schema(flag("x-y", default=1), flag("z", default="a")), schema(flag("x-y", default=2), flag("z"))
    assert [change.flag for change in default_changes({}, old, new)] == ["x-y", "z"]
    assert [change.flag for change in default_changes({"x-y": "1"}, old, new)] == ["z"]


def test_an_upgrade_to_the_same_release_changes_nothing() -> None:
    assert diff(load("0.5.9"), load("0.5.9")) == []
