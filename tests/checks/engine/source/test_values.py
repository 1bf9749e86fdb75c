"""Names in a syntax tree: the name of a node, the names that a statement binds, the statements of a body."""

from __future__ import annotations

import ast

import pytest

from checks.engine.source.values import bound_names, dotted, flat


@pytest.mark.parametrize(
    ("text", "name"), [("a", "a"), ("a.b.c", "a.b.c"), ("a().b", ""), ("a[0].b", ""), ("1", ""), ("a()", "")]
)
def test_a_name_or_attribute_is_written_with_dots(text: str, name: str) -> None:
    assert dotted(ast.parse(text, mode="eval").body) == name


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a.b", ["a"]),
        ("import a.b as c, d", ["c", "d"]),
        ("from a import b as c, d", ["c", "d"]),
        ("from a import *", ["*"]),
        ("class A: pass", ["A"]),
        ("def f(): pass", ["f"]),
        ("async def f(): pass", ["f"]),
        ("a = b = 1", ["a", "b"]),
        ("a.b = 1", []),
        ("a: int = 1", ["a"]),
        ("a.b: int = 1", []),
        ("a += 1", ["a"]),
        ("a.append(1)", ["a"]),
        ("a.b.append(1)", []),
        ("f(1)", []),
        ("pass", []),
    ],
)
def test_a_statement_binds_or_changes_names(text: str, names: list[str]) -> None:
    assert bound_names(ast.parse(text).body[0]) == names


def test_a_body_includes_conditional_statements_except_changes_of_lists() -> None:
    body = ast.parse(
        "a = 1\nif x:\n    b = 2\n    L.append(3)\nelse:\n    c = 4\n"
        "try:\n    d = 5\n    M.append(6)\nexcept E:\n    e = 7\nelse:\n    f = 8\nM.append(9)\n"
    ).body
    kept = [ast.unparse(item) for item in flat(body) if not isinstance(item, (ast.If, ast.Try))]
    assert kept == ["a = 1", "b = 2", "c = 4", "d = 5", "M.append(6)", "e = 7", "f = 8", "M.append(9)"]
