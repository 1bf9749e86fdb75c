"""Expressions in the forms of the engine's choices and defaults: their values, and the unresolved ones."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from checks.engine.source.evaluate import attribute, evaluate, extended, members
from checks.engine.source.values import Class, Member, Opaque, Unresolved
from tests.support.engine_sources import scope_of

NAMES = """
import sys, argparse, torch
A = ["a", "b"]
N = 3
class Colour(Enum):
    RED = "red"
    BLUE = "blue"
    _private = 1
class Count(IntEnum):
    ONE = auto()
    TWO = enum.auto()
class Plain:
    X = "x"
    ALL = (X, "y")
    SIZE: int = N
    def make(self): pass
class Child(Plain):
    Z = "z"
TABLE = {"k": Missing, "l": 2}
def listed():
    return [c.value for c in Colour]
def inner():
    from sglang.srt.other import B
    if B:
        x = 1
    return B
def silent():
    x = 1
"""
SCOPE = scope_of(NAMES, other="B = ['deep']\n")


def worth(text: str, **local: Any) -> Any:
    return evaluate(ast.parse(text, mode="eval").body, SCOPE, local)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a'", "a"),
        ("A + ['c']", ["a", "b", "c"]),
        ("[*A, 'c']", ["a", "b", "c"]),
        ("(1, N)", (1, 3)),
        ("{1, N}", {1, 3}),
        ("{'x': 1, **{'y': N}}", {"x": 1, "y": 3}),
        ("N * 2 ** 10 - 1", 3071),
        ("-N", -3),
        ("not N", False),
        ("{1} | {2}", {1, 2}),
        ("A[0]", "a"),
        ("{'x': N}['x']", 3),
        ("f'{N} of {A[1]}'", "3 of b"),
        ("f'{unknown()} of {N}'", "{unknown()} of 3"),
        ("[x.upper() for x in A]", ["A", "B"]),
        ("[m.value for m in Colour]", ["red", "blue"]),
        ("[m.name for m in Count]", ["ONE", "TWO"]),
        ("list(Count)", [Member("ONE", 1), Member("TWO", 2)]),
        ("list(TABLE.keys())", ["k", "l"]),
        ("sorted({'b', 'a'})", ["a", "b"]),
        ("dict()", {}),
        ("tuple(A)", ("a", "b")),
        ("Colour.RED", Member("RED", "red")),
        ("Colour.RED.value", "red"),
        ("Plain.ALL", ("x", "y")),
        ("Plain.SIZE", 3),
        ("Child.Z", "z"),
        ("Child.ALL", ("x", "y")),
        ("sys.maxsize", 2**63 - 1),
        ("argparse.SUPPRESS", "==SUPPRESS=="),
        ("torch.float16", Opaque("torch.float16")),
        ("int", Opaque("int")),
        ("TABLE['k']", Opaque("Missing")),
        ("field(default=N)", 3),
        ("dataclasses.field(default_factory=lambda: list(A))", ["a", "b"]),
        ("field(default_factory=dict)", {}),
        ("field()", None),
        ("listed()", ["red", "blue"]),
        ("inner()", ["deep"]),
    ],
)
def test_an_expression_is_worth(text: str, value: object) -> None:
    assert worth(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "unknown",
        "unknown.name",
        "compute(1)",
        "listed(1)",
        "silent()",
        "(lambda: 1)()",
        "A[9]",
        "A['x']",
        "A + 1",
        "1 / 2",
        "Colour.GREEN",
        "Child.nothing",
        "'text'.format",
        "[x for x in A if x]",
        "[x for x in A for y in A]",
        "[a for a, b in A]",
        "N if A else 1",
        "A == A",
        "lambda: 1",
    ],
)
def test_an_unsupported_form_is_unresolved(text: str) -> None:
    with pytest.raises(Unresolved):
        worth(text)


def test_an_unresolved_expression_names_its_file_and_line() -> None:
    with pytest.raises(Unresolved, match=r"srt/main.py:1: unsupported IfExp"):
        worth("N if A else 1")
    with pytest.raises(Unresolved, match=r"srt/main.py:1: IndexError"):
        worth("A[9]")
    with pytest.raises(Unresolved, match=r"srt/main.py: missing value"):
        evaluate(None, SCOPE)


@pytest.mark.parametrize(
    ("statement", "before", "after"),
    [
        ("L += A", ["x"], ["x", "a", "b"]),
        ("L.append(N)", ["x"], ["x", 3]),
        ("L.extend(A)", ["x"], ["x", "a", "b"]),
        ("L.add(N)", {"x"}, {"x", 3}),
        ("L.update({N})", {"x"}, {"x", 3}),
        ("L.extend(Count)", [], [Member("ONE", 1), Member("TWO", 2)]),
        ("L.sort()", ["x"], ["x"]),
        ("L", ["x"], ["x"]),
        ("pass", ["x"], ["x"]),
    ],
)
def test_a_list_grows_by_the_statements_that_change_it(statement: str, before: Any, after: Any) -> None:
    assert extended(before, ast.parse(statement).body[0], SCOPE) == after


def test_local_names_go_before_those_of_the_file() -> None:
    assert worth("N + 1", N=10) == 11


def test_members_are_listed_in_order_without_private_ones() -> None:
    colour = SCOPE.lookup("Colour")
    assert isinstance(colour, Class)
    assert members(colour) == [Member("RED", "red"), Member("BLUE", "blue")]
    assert attribute(Member("RED", "red"), "value") == "red"
