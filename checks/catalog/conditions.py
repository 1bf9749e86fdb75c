"""The condition language of rules: five operators (equals, in, present, at_least, matches), three connectives.

A condition is a mapping whose entries must all hold. Keys are fact names (`flag.tp-size`, `host.sm`) or
`all`, `any` (lists of conditions) and `unless` (a condition that must not hold). If a rule needs more than this,
add a derived fact in Python (`checks/facts/derived/`), not an operator here.

Logic is three-valued. `flag.* env.* observed.* log.* captured.*` are closed: a missing fact is absent. All other
namespaces are open: a missing fact is unknown, and a rule never fires on an unknown fact. `explain` evaluates a
condition like `Condition.test`, but slowly and with every step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, TypeAlias

from msgspec import Struct

Facts: TypeAlias = Mapping[str, Any]
"""Flat map: `flag.* env.* model.* host.* engine.* package.* observed.*` → value. Rules see nothing else."""

Test: TypeAlias = Callable[[Facts], bool | None]
"""One test of the facts: True, False, or None if the result depends on an unknown fact."""

CLOSED = ("flag.", "env.", "observed.", "log.", "captured.")
_MISSING = object()
OPERATORS = ("equals", "in", "present", "at_least", "matches")
CONNECTIVES = ("all", "any", "unless")


class ConditionError(ValueError):
    """A condition is malformed. The text names the malformed part; the caller adds file and line."""


class Condition(Struct, frozen=True):
    """A parsed condition. `test(facts)` is True, False, or None if the result depends on an unknown fact."""

    test: Test
    names: frozenset[str]
    """Every fact that the condition tests, so that lint can prove that the names exist."""
    written: Any = None
    """The condition in its YAML form, for `comparisons` and `explain`."""

    def holds(self, facts: Facts) -> bool:
        """Whether the condition is known to hold."""
        return self.test(facts) is True


def parse_condition(data: object) -> Condition:
    """Return the condition in a YAML value. Raises ConditionError."""
    if not isinstance(data, Mapping) or not data:
        raise ConditionError(f"a condition must be a non-empty mapping, not {data!r}")
    parts = [_parse_entry(str(key), value) for key, value in data.items()]
    return Condition(_combined([part.test for part in parts], decisive=False), _names(parts), data)


class Comparison(Struct, frozen=True):
    """The comparison of one fact with one operand."""

    name: str
    operator: str
    operand: Any


class Step(Struct, frozen=True, kw_only=True):
    """One step in the evaluation of a condition: a comparison, or a connective with its inner steps."""

    word: str  # a connective, or the operator of a comparison
    holds: bool | None  # None: the result depends on an unknown fact
    name: str = ""  # the fact of a comparison
    operand: Any = None
    known: bool = True  # False: the fact was not measured
    value: Any = None
    steps: tuple[Step, ...] = ()


def comparisons(written: Mapping[str, Any]) -> Iterator[Comparison]:
    """Return every comparison in a valid condition (as `parse_condition` accepts it), in the order written."""
    for key, value in written.items():
        if key in ("all", "any"):
            for item in value:
                yield from comparisons(item)
        elif key == "unless":
            yield from comparisons(value)
        else:
            operators = value if isinstance(value, Mapping) else {"equals": value}
            yield from (Comparison(key, operator, operand) for operator, operand in operators.items())


def explain(written: Mapping[str, Any], facts: Facts) -> Step:
    """Evaluate a condition step by step. The result holds exactly if `parse_condition(written).holds(facts)`."""
    steps: list[Step] = []
    for key, value in written.items():
        match key:
            case "all" | "any":
                inner = tuple(_bare(explain(item, facts)) for item in value)
                steps.append(Step(word=key, holds=_joined(key, inner), steps=inner))
            case "unless":
                denied = explain(value, facts)
                steps.append(Step(word=key, holds=_negate(denied.holds), steps=denied.steps))
            case _:
                steps += [_compared(item, facts) for item in comparisons({key: value})]
    return Step(word="all", holds=_joined("all", steps), steps=tuple(steps))


def _bare(step: Step) -> Step:
    return step.steps[0] if len(step.steps) == 1 else step


def _compared(item: Comparison, facts: Facts) -> Step:
    known = item.name in facts or item.name.startswith(CLOSED)
    return Step(
        word=item.operator,
        holds=_fact_test(item.name, item.operator, item.operand)(facts),
        name=item.name,
        operand=item.operand,
        known=known,
        value=facts.get(item.name),
    )


def _joined(word: str, steps: Sequence[Step]) -> bool | None:
    settled = word == "any"  # one step that holds settles `any`; one step that does not hold settles `all`
    if any(step.holds is settled for step in steps):
        return settled
    return None if any(step.holds is None for step in steps) else not settled


def _parse_entry(key: str, value: object) -> Condition:
    match key:
        case "all" | "any":
            if not isinstance(value, list) or not value:
                raise ConditionError(f"`{key}` takes a non-empty list of conditions")
            parts = [parse_condition(item) for item in value]
            tests = [part.test for part in parts]
            return Condition(_combined(tests, decisive=key == "any"), _names(parts))
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
            raise ConditionError(f"unknown operator `{operator}` under `{name}`: use one of {', '.join(OPERATORS)}")
        tests.append(_fact_test(name, str(operator), operand))
    if not tests:
        raise ConditionError(f"`{name}` has no operator")
    return Condition(_combined(tests, decisive=False), frozenset({name}))


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
                raise ConditionError(f"`equals` under `{name}` takes one value, not {operand}: use {instead}")
            return lambda actual: _same(actual, operand)
        case "in":
            if not isinstance(operand, list) or not operand:
                raise ConditionError(f"`in` under `{name}` takes a non-empty list")
            return lambda actual: any(_same(actual, item) for item in operand)
        case "present":
            if not isinstance(operand, bool):
                raise ConditionError(f"`present` under `{name}` takes true or false")
            return bool
        case "at_least":
            if isinstance(operand, bool) or not isinstance(operand, int | float):
                raise ConditionError(f"`at_least` under `{name}` takes a number")
            return lambda actual: (number := as_number(actual)) is not None and number >= operand
        case _:
            try:
                pattern = re.compile(str(operand))
            except re.error as error:
                raise ConditionError(f"`matches` under `{name}` takes a regex: {error}") from error
            return lambda actual: any(pattern.search(str(item)) for item in _items(actual))


def as_number(value: object) -> float | None:
    """Return a fact as a number: `"0.85"`, `8`, `"16k"` (k and m are powers of 1024).

    None if the fact is not a number, and for `nan` and `inf`.
    """
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


def _names(parts: Iterable[Condition]) -> frozenset[str]:
    return frozenset().union(*(part.names for part in parts))


def _combined(tests: Sequence[Test], *, decisive: bool) -> Test:
    """Return the test whose value is `decisive` if any part has that value, the opposite if all are known, else None.

    False decides `all`, True decides `any`. Plain loops: a check runs hundreds of tests, and generators take twice as
    long.
    """
    if len(tests) == 1:
        return tests[0]

    def test(facts: Facts) -> bool | None:
        known = True
        for part in tests:
            value = part(facts)
            if value is decisive:
                return decisive
            if value is None:
                known = False
        return not decisive if known else None

    return test


def _negate(value: bool | None) -> bool | None:
    return None if value is None else not value
