"""The small condition language of rules: five operators (equals, in, present, at_least, matches), three connectives.

A condition is a mapping whose entries must all hold. Keys are fact names (`flag.tp-size`, `host.sm`) or
`all`, `any` (lists of conditions) and `unless` (a condition that must not hold). When a rule wants more than this,
add a derived fact in Python (`checks/derived/`), not an operator here.

Logic is three-valued. `flag.* env.* observed.*` are closed: what is not there is absent. Everything else is open:
what nobody looked at is unknown, and a rule never fires on something unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, TypeAlias

from msgspec import Struct

Facts: TypeAlias = Mapping[str, Any]
"""Flat: `flag.* env.* model.* host.* engine.* package.* observed.*` → value. The only thing that rules see."""

Test: TypeAlias = Callable[[Facts], bool | None]
"""One question to the facts: True, False, or None when it hangs on something unknown."""

CLOSED = ("flag.", "env.", "observed.", "log.", "captured.")
_MISSING = object()
OPERATORS = ("equals", "in", "present", "at_least", "matches")
CONNECTIVES = ("all", "any", "unless")


class ConditionError(ValueError):
    """A condition is malformed. The text names the offending part; the caller adds file and line."""


class Condition(Struct, frozen=True):
    """A parsed condition. `test(facts)` is True, False, or None when it hangs on something unknown."""

    test: Test
    names: frozenset[str]
    """Every fact the condition looks at, so that lint can prove the names exist."""

    def holds(self, facts: Facts) -> bool:
        """True only when it is known to hold."""
        return self.test(facts) is True


def parse_condition(data: object) -> Condition:
    """Condition from its YAML form. Raises ConditionError."""
    if not isinstance(data, Mapping) or not data:
        raise ConditionError(f"a condition is a non-empty mapping, not {data!r}")
    parts = [_parse_entry(str(key), value) for key, value in data.items()]
    return _join(parts, _all_of)


def _parse_entry(key: str, value: object) -> Condition:
    match key:
        case "all" | "any":
            if not isinstance(value, list) or not value:
                raise ConditionError(f"`{key}` takes a non-empty list of conditions")
            return _join([parse_condition(item) for item in value], _all_of if key == "all" else _any_of)
        case "unless":
            inner = parse_condition(value)
            return Condition(lambda facts: _negate(inner.test(facts)), inner.names)
        case _ if "." not in key:
            raise ConditionError(f"`{key}` is neither a fact (namespace.name) nor one of {', '.join(CONNECTIVES)}")
        case _:
            return _parse_fact(key, value)


def _parse_fact(name: str, value: object) -> Condition:
    operators = value if isinstance(value, Mapping) else {"equals": value}
    tests = []
    for operator, operand in operators.items():
        if operator not in OPERATORS:
            raise ConditionError(f"`{operator}` under `{name}`: operators are {', '.join(OPERATORS)}")
        tests.append(_fact_test(name, str(operator), operand))
    if not tests:
        raise ConditionError(f"`{name}` has no operator")
    return Condition(_all_of(tests), frozenset({name}))


def _fact_test(name: str, operator: str, operand: Any) -> Test:
    compare = _comparison(name, operator, operand)
    closed = name.startswith(CLOSED)

    if operator == "present":

        def present(facts: Facts) -> bool | None:
            actual = facts.get(name, _MISSING)
            if actual is _MISSING:
                return None if not closed else operand is False
            return (actual is not None and actual is not False) is operand

        return present

    def test(facts: Facts) -> bool | None:
        actual = facts.get(name, _MISSING)
        if actual is _MISSING:
            return False if closed else None
        return False if actual is None else compare(actual)

    return test


def _comparison(name: str, operator: str, operand: Any) -> Callable[[Any], bool]:
    match operator:
        case "equals":
            if operand is None or isinstance(operand, list):
                instead = "`present: false`" if operand is None else f"`in: {operand}`"
                raise ConditionError(f"`equals` under `{name}` takes one value, not {operand}: write {instead}")
            return lambda actual: _same(actual, operand)
        case "in":
            if not isinstance(operand, list) or not operand:
                raise ConditionError(f"`in` under `{name}` takes a non-empty list")
            return lambda actual: any(_same(actual, item) for item in operand)
        case "present":
            if not isinstance(operand, bool):
                raise ConditionError(f"`present` under `{name}` is true or false")
            return bool
        case "at_least":
            if isinstance(operand, bool) or not isinstance(operand, int | float):
                raise ConditionError(f"`at_least` under `{name}` takes a number")
            return lambda actual: (number := as_number(actual)) is not None and number >= operand
        case _:
            try:
                pattern = re.compile(str(operand))
            except re.error as error:
                raise ConditionError(f"`matches` under `{name}`: {error}") from error
            return lambda actual: any(pattern.search(str(item)) for item in _items(actual))


def as_number(value: object) -> float | None:
    """A number out of a fact: `"0.85"`, `8`, `"16k"`; None when it is none, and for `nan` and `inf`."""
    if isinstance(value, bool):
        return None
    text = str(value).strip().lower()
    scale = {"k": 1024.0, "m": 1024.0**2}.get(text[-1:], 1.0)
    try:
        number = float(text[:-1] if scale != 1.0 else text) * scale
    except ValueError:
        return None
    return number if isfinite(number) else None


def _same(actual: object, expected: object) -> bool:
    if isinstance(actual, list | tuple):
        return any(_same(item, expected) for item in actual)
    if isinstance(actual, bool) or isinstance(expected, bool):
        return (
            str(actual).lower() in ("true", "1")
            if expected is True
            else (str(actual).lower() in ("false", "0") if expected is False else str(actual).lower() == str(expected))
        )
    if isinstance(expected, int | float):
        return as_number(actual) == float(expected)
    return str(actual) == str(expected)


def _items(actual: object) -> Iterable[object]:
    return actual if isinstance(actual, list | tuple) else (actual,)


def _join(parts: list[Condition], rule: Callable[[Sequence[Test]], Test]) -> Condition:
    names = frozenset().union(*(part.names for part in parts))
    return Condition(rule([part.test for part in parts]), names)


def _all_of(tests: Sequence[Test]) -> Test:
    """False as soon as one is. Plain loops: a check asks some hundred conditions, generators cost twice as much."""
    if len(tests) == 1:
        return tests[0]

    def test(facts: Facts) -> bool | None:
        known = True
        for part in tests:
            value = part(facts)
            if value is False:
                return False
            if value is None:
                known = False
        return True if known else None

    return test


def _any_of(tests: Sequence[Test]) -> Test:
    """True as soon as one is."""
    if len(tests) == 1:
        return tests[0]

    def test(facts: Facts) -> bool | None:
        known = True
        for part in tests:
            value = part(facts)
            if value is True:
                return True
            if value is None:
                known = False
        return False if known else None

    return test


def _negate(value: bool | None) -> bool | None:
    return None if value is None else not value
