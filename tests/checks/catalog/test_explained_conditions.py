"""`explain` evaluates every step of a condition, and agrees with the condition itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from checks.catalog.conditions import Comparison, Step, comparisons, explain, parse_condition
from checks.catalog.entries import entries
from checks.facts import derived

FACTS: dict[str, Any] = {
    "host.sm": 90, "flag.tp-size": "8", "model.mla": False, "model.architectures": ["A", "B"], "package.x": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("written", "holds"),
    [
        ({"host.sm": 90}, True),
        ({"host.sm": {"at_least": 100}}, False),
        ({"host.vram_gb": {"at_least": 1}}, None),
        ({"flag.tp-size": {"at_least": 8}}, True),
        ({"flag.nothing": "x"}, False),
        ({"flag.nothing": {"present": False}}, True),
        ({"model.architectures": {"in": ["B", "C"]}}, True),
        ({"model.architectures": {"matches": "^[CD]"}}, False),
        ({"package.x": {"present": False}}, True),
        ({"package.y": {"present": False}}, None),
        ({"unless": {"model.mla": True}}, True),
        ({"unless": {"host.vram_gb": 80}}, None),
        ({"any": [{"host.vram_gb": 80}, {"host.sm": 90}]}, True),
        ({"any": [{"host.vram_gb": 80}, {"host.sm": 80}]}, None),
        ({"all": [{"host.vram_gb": 80}, {"host.sm": 80}]}, False),
        ({"host.sm": {"at_least": 80, "in": [100]}}, False),
    ],
)
def test_an_explanation_agrees_with_its_condition(written: dict[str, Any], holds: bool | None) -> None:
    assert parse_condition(written).test(FACTS) is holds
    assert explain(written, FACTS).holds is holds


def conditions() -> Iterator[tuple[Any, Any]]:
    for item in entries():
        facts = [derived.extend({"host.platform": "cuda", "engine.version": c.engine, **c.facts}) for c in item.cases]
        conditions = [rule.when for rule in item.before] + [pattern.when for pattern in item.during if pattern.when]
        conditions += [parse_condition(remedy.when) for remedy in item.remedies if remedy.when]
        yield from ((condition, known) for condition in conditions for known in (*facts, {}, FACTS))


def test_every_condition_that_ships_is_explained_as_it_is_judged() -> None:
    pairs = list(conditions())
    assert len(pairs) > 2000
    for condition, facts in pairs:
        assert explain(condition.written, facts).holds is condition.test(facts)
        assert {item.name for item in comparisons(condition.written)} == condition.names


def test_a_step_shows_the_value_and_whether_anybody_looked() -> None:
    seen, open_, absent = explain({"host.sm": 100, "host.vram_gb": {"at_least": 80}, "flag.nothing": True}, FACTS).steps
    assert seen == Step(word="equals", holds=False, name="host.sm", operand=100, known=True, value=90)
    assert (open_.known, open_.holds) == (False, None)
    assert (absent.known, absent.value, absent.holds) == (True, None, False)


def test_connectives_keep_their_shape() -> None:
    step = explain({"unless": {"any": [{"host.sm": 90}, {"host.sm": 80, "model.mla": False}]}}, FACTS).steps[0]
    assert (step.word, step.holds) == ("unless", False)
    assert [part.word for part in step.steps[0].steps] == ["equals", "all"]


def test_comparisons_come_in_the_order_written() -> None:
    written = {"unless": {"a.b": 1}, "c.d": {"at_least": 2, "present": True}, "any": [{"e.f": {"in": [3]}}]}
    assert list(comparisons(written)) == [
        Comparison("a.b", "equals", 1),
        Comparison("c.d", "at_least", 2),
        Comparison("c.d", "present", True),
        Comparison("e.f", "in", [3]),
    ]
