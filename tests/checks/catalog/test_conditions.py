"""The condition language: each operator on each kind of value, logic with unknown facts, and invalid conditions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.catalog.conditions import OPERATORS, ConditionError, as_number, parse_condition

UNKNOWN = object()  # the fact was not measured
KNOWN = ", ".join(OPERATORS)


def ask(condition: object, name: str = "host.x", value: object = UNKNOWN) -> bool | None:
    return parse_condition(condition).test({} if value is UNKNOWN else {name: value})


@pytest.mark.parametrize(
    ("wanted", "value", "holds"),
    [
        ("fa3", "fa3", True),
        ("fa3", "FA3", False),
        ("8", 8, True),
        (8, "8", True),
        (8, "8.0", True),
        (8, "eight", False),
        (0.85, "0.850", True),
        (16384, "16k", True),
        (2097152, "2M", True),
        ("16k", 16384, False),
        ("16k", "16k", True),
        (8, ["4", "8"], True),
        (8, ["4", "16"], False),
        ("a", ("a", "b"), True),
        ("a", [], False),
        ("a", None, False),
    ],
)
def test_equals_compares_texts_as_typed_and_numbers_by_value(wanted: object, value: object, holds: bool) -> None:
    assert ask({"host.x": wanted}, value=value) is holds
    assert ask({"host.x": {"equals": wanted}}, value=value) is holds


@pytest.mark.parametrize("value", [True, "true", "True", "TRUE", "1", 1])
def test_a_switch_is_on_however_it_is_written(value: object) -> None:
    assert ask({"host.x": True}, value=value) is True
    assert ask({"host.x": False}, value=value) is False


@pytest.mark.parametrize("value", [False, "false", "False", "0", 0])
def test_a_switch_is_off_however_it_is_written(value: object) -> None:
    assert ask({"host.x": False}, value=value) is True
    assert ask({"host.x": True}, value=value) is False


@pytest.mark.parametrize("value", ["yes", "on", "2", "", None])
def test_other_words_are_neither_on_nor_off(value: object) -> None:
    assert ask({"host.x": True}, value=value) is ask({"host.x": False}, value=value) is False


def test_a_text_may_name_a_switch_and_a_number_may_not() -> None:
    assert ask({"host.x": "true"}, value=True) is True
    assert ask({"host.x": 1}, value=True) is False


@pytest.mark.parametrize(
    ("value", "holds"), [("a", True), ("2k", True), (2048, True), ("b", False), (["c", "a"], True), (None, False)]
)
def test_in_holds_for_any_item_of_the_list(value: object, holds: bool) -> None:
    assert ask({"host.x": {"in": ["a", 2048]}}, value=value) is holds


@pytest.mark.parametrize(
    ("least", "value", "holds"),
    [
        (8, 8, True),
        (8, 7.99, False),
        (16384, "16k", True),
        (16385, "16k", False),
        (1048576, "1m", True),
        (-1, "-1", True),
        (0.5, " 0.5 ", True),
        (1, "many", False),
        (0, True, False),
        (0, "nan", False),
        (0, "inf", False),
        (0, None, False),
        (0, [8], False),
    ],
)
def test_at_least_reads_units_and_rejects_what_is_not_a_number(least: float, value: object, holds: bool) -> None:
    assert ask({"host.x": {"at_least": least}}, value=value) is holds


@pytest.mark.parametrize(
    ("pattern", "value", "holds"),
    [
        ("^Qwen", "Qwen3", True),
        ("^wen", "Qwen3", False),
        ("wen", "Qwen3", True),
        ("(?i)QWEN", "qwen", True),
        ("^8$", 8, True),
        ("Moe", ["Llama", "Qwen3MoeForCausalLM"], True),
        ("Moe", ["Llama"], False),
        ("^True$", True, True),
        ("", None, False),
    ],
)
def test_matches_searches_the_text_of_each_item(pattern: str, value: object, holds: bool) -> None:
    assert ask({"host.x": {"matches": pattern}}, value=value) is holds


@pytest.mark.parametrize(
    ("value", "present"), [("a", True), (0, True), ("", True), (True, True), ([], True), (False, False), (None, False)]
)
def test_a_fact_is_present_unless_it_was_looked_for_in_vain_or_switched_off(value: object, present: bool) -> None:
    assert ask({"host.x": {"present": True}}, value=value) is present
    assert ask({"host.x": {"present": False}}, value=value) is not present


def test_several_operators_of_one_fact_must_all_hold() -> None:
    both = {"host.x": {"at_least": 90, "in": [90, 100]}}
    assert [ask(both, value=value) for value in (90, 100, 95, 80)] == [True, True, False, False]


# --- unknown, absent, null

ANY_OPERATOR: list[Any] = ["a", {"in": ["a"]}, {"at_least": 0}, {"matches": "."}, {"present": True}, {"present": False}]


@pytest.mark.parametrize("operator", ANY_OPERATOR)
@pytest.mark.parametrize("space", ["host", "model", "package", "engine", "draft", "launch"])
def test_an_unmeasured_fact_leaves_a_condition_unknown(space: str, operator: Any) -> None:
    condition = parse_condition({f"{space}.x": operator})
    assert condition.test({}) is None
    assert not condition.holds({})


@pytest.mark.parametrize("space", ["flag", "env", "observed", "log", "captured"])
@pytest.mark.parametrize("operator", ANY_OPERATOR)
def test_what_is_not_in_a_closed_space_is_absent(space: str, operator: Any) -> None:
    assert ask({f"{space}.x": operator}) is (operator == {"present": False})


def test_a_null_is_an_answer() -> None:
    assert ask({"host.x": "a"}, value=None) is False
    assert ask({"unless": {"host.x": "a"}}, value=None) is True


@pytest.mark.parametrize(
    ("parts", "of_all", "of_any"),
    [
        ("TT", True, True),
        ("TF", False, True),
        ("TU", None, True),
        ("FU", False, None),
        ("UU", None, None),
        ("FF", False, False),
        ("T", True, True),
        ("F", False, False),
        ("U", None, None),
    ],
)
def test_one_known_part_may_settle_a_connective(parts: str, of_all: bool | None, of_any: bool | None) -> None:
    facts = {"host.T": 1, "host.F": 0}
    items = [{f"host.{part}": 1} for part in parts]
    for ordered in (items, items[::-1]):
        assert parse_condition({"all": ordered}).test(facts) is of_all
        assert parse_condition({"any": ordered}).test(facts) is of_any
        assert parse_condition({"unless": {"all": ordered}}).test(facts) is (None if of_all is None else not of_all)


def test_the_entries_of_a_mapping_must_all_hold() -> None:
    condition = parse_condition(
        {"host.sm": 90, "any": [{"flag.a": True}, {"flag.b": True}], "unless": {"flag.c": True}}
    )
    assert condition.test({"host.sm": 90, "flag.b": True}) is True
    assert condition.holds({"host.sm": 90, "flag.b": True})
    assert condition.test({"host.sm": 90}) is False
    assert condition.test({"host.sm": 90, "flag.b": True, "flag.c": True}) is False
    assert condition.test({"flag.b": True}) is None
    assert condition.names == {"host.sm", "flag.a", "flag.b", "flag.c"}


# --- properties

NAMES = ("flag.a", "host.a", "host.b", "model.c")
VALUES = st.sampled_from(["a", "8", 8, True, False, None, "16k", ["a", 8]])
SINGLE = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from(
        ["a", 8, True, {"in": ["a", 8]}, {"at_least": 8}, {"matches": "a"}, {"present": True}, {"present": False}]
    ),
).map(lambda pair: {pair[0]: pair[1]})
CONDITIONS = st.recursive(
    SINGLE,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda items: {"all": items}),
        st.lists(inner, min_size=1, max_size=3).map(lambda items: {"any": items}),
        inner.map(lambda item: {"unless": item}),
    ),
    max_leaves=6,
)
FACTS = st.dictionaries(st.sampled_from(NAMES), VALUES)


@given(st.lists(CONDITIONS, min_size=1, max_size=4), FACTS)
def test_de_morgan_holds_with_unknown_facts(parts: list[dict[str, Any]], facts: dict[str, Any]) -> None:
    negated = [{"unless": part} for part in parts]
    for one, other in (("all", "any"), ("any", "all")):
        left, right = parse_condition({"unless": {one: parts}}), parse_condition({other: negated})
        assert left.test(facts) is right.test(facts)
        assert left.names == right.names


@given(st.lists(CONDITIONS, min_size=1, max_size=4), FACTS, st.randoms())
def test_the_order_of_parts_does_not_matter(parts: list[dict[str, Any]], facts: dict[str, Any], chance: Any) -> None:
    mixed = parts.copy()
    chance.shuffle(mixed)
    for connective in ("all", "any"):
        assert parse_condition({connective: parts}).test(facts) is parse_condition({connective: mixed}).test(facts)


@given(CONDITIONS, FACTS, FACTS)
def test_learning_more_about_the_host_never_overturns_an_answer(
    data: dict[str, Any], facts: dict[str, Any], more: dict[str, Any]
) -> None:
    condition = parse_condition(data)
    before = condition.test(facts)
    learned = {name: value for name, value in more.items() if not name.startswith("flag.")}
    assert before is None or condition.test({**learned, **facts}) is before


# --- what is refused


@pytest.mark.parametrize(
    ("condition", "complaint"),
    [
        ("flag.x", "a condition must be a non-empty mapping, not 'flag.x'"),
        ({}, "a condition must be a non-empty mapping, not {}"),
        (None, "a condition must be a non-empty mapping, not None"),
        ({"tp-size": 8}, "`tp-size` is neither a fact (namespace.name) nor one of all, any, unless"),
        ({"all": []}, "`all` takes a non-empty list of conditions"),
        ({"any": {"flag.x": 1}}, "`any` takes a non-empty list of conditions"),
        ({"unless": [{"flag.x": 1}]}, "a condition must be a non-empty mapping, not [{'flag.x': 1}]"),
        ({"any": [{"flag.x": {"above": 1}}]}, f"unknown operator `above` under `flag.x`: use one of {KNOWN}"),
        ({"flag.x": {}}, "`flag.x` has no operator"),
        ({"flag.x": None}, "`equals` under `flag.x` takes one value, not None: use `present: false`"),
        ({"flag.x": ["a"]}, "`equals` under `flag.x` takes one value, not ['a']: use `in: ['a']`"),
        ({"flag.x": {"in": "a"}}, "`in` under `flag.x` takes a non-empty list"),
        ({"flag.x": {"in": []}}, "`in` under `flag.x` takes a non-empty list"),
        ({"flag.x": {"present": 1}}, "`present` under `flag.x` takes true or false"),
        ({"flag.x": {"at_least": "16k"}}, "`at_least` under `flag.x` takes a number"),
        ({"flag.x": {"at_least": True}}, "`at_least` under `flag.x` takes a number"),
        ({"flag.x": {"matches": "a("}}, "`matches` under `flag.x` takes a regex: missing ), unterminated subpattern"),
    ],
)
def test_a_malformed_condition_names_the_offending_part(condition: object, complaint: str) -> None:
    with pytest.raises(ConditionError) as error:
        parse_condition(condition)
    assert str(error.value).startswith(complaint)


# --- numbers


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (8, 8.0),
        (0.5, 0.5),
        ("8", 8.0),
        ("-1", -1.0),
        ("0.85", 0.85),
        ("16k", 16384.0),
        ("16K", 16384.0),
        ("1.5M", 1572864.0),
        (" 7 ", 7.0),
        (True, None),
        ("", None),
        ("k", None),
        ("8 GB", None),
        ("eight", None),
        (None, None),
        ([8], None),
        ("nan", None),
        ("inf", None),
        ("1e400", None),
        (float("inf"), None),
    ],
)
def test_a_number_is_finite_and_may_have_a_unit(value: object, number: float | None) -> None:
    assert as_number(value) == number
