"""Sentences about conditions that were held against facts."""

from __future__ import annotations

from typing import Any

import pytest

from checks.catalog.conditions import explain
from checks.facts.trace_words import asked, why_not, worded

FACTS: dict[str, Any] = {"host.sm": 90, "flag.a": "x", "model.mla": False, "package.p": None}


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ({"host.sm": 100}, "`host.sm` is 90, but the condition requires 100"),
        ({"host.sm": {"at_least": 100}}, "`host.sm` is 90, but the condition requires at least 100"),
        ({"flag.a": {"in": ["y", "z"]}}, "`flag.a` is x, but the condition requires one of [y, z]"),
        ({"flag.a": {"matches": "^y"}}, "`flag.a` is x, but the condition requires a match of ^y"),
        ({"flag.b": {"present": True}}, "`flag.b` is not set, but the condition requires it to be present"),
        (
            {"package.p": {"present": True}},
            "`package.p` is known to be absent, but the condition requires it to be present",
        ),
        ({"host.vram_gb": 80}, "`host.vram_gb` is unknown, but the condition requires 80"),
        ({"host.vram_gb": 80, "host.sm": 100}, "`host.sm` is 90, but the condition requires 100"),
        ({"unless": {"model.mla": False}}, "`unless` holds: `model.mla` is false"),
        ({"unless": {"host.vram_gb": 80}}, "`unless` is undecided: `host.vram_gb` is unknown"),
        (
            {"any": [{"host.sm": 80}, {"host.sm": 100}]},
            "nothing under `any` holds: `host.sm` is 90, but the condition requires 80",
        ),
    ],
)
def test_the_first_reason_is_what_is_false_else_what_is_unknown(written: dict[str, Any], sentence: str) -> None:
    assert why_not(explain(written, FACTS)) == sentence


def test_what_is_asked_for_reads_as_a_phrase() -> None:
    steps = explain({"a.b": {"present": False, "at_least": 2, "equals": True}}, {}).steps
    assert [asked(step) for step in steps] == ["not present", "at least 2", "true"]


def test_values_read_as_a_rule_writes_them() -> None:
    assert [worded(value) for value in (None, True, 8, ["a", False])] == ["null", "true", "8", "[a, false]"]
