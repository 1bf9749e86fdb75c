"""Annotated fields: which become options, of which type, and in which order."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from checks.engine.source.annotated import Field, annotated_fields
from checks.engine.source.scope import Scope
from checks.engine.source.values import Class
from tests.support.engine_sources import source_tree


def fields(body: str, head: str = "", **files: str) -> dict[str, Field]:
    """The fields of a class `ServerArgs` with this body; keyword `order` is `field_order.py`."""
    text = f"{head}class ServerArgs:\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    more = {"srt/arg_groups/field_order.py": files["order"]} if "order" in files else {}
    scope = Scope(source_tree({"srt/server_args.py": text, **more}), "srt/server_args.py")
    cls = scope.lookup("ServerArgs")
    assert isinstance(cls, Class)
    return annotated_fields(scope, cls)


@pytest.mark.parametrize(
    ("annotation", "kind", "element", "literal"),
    [
        ("A[int, 'x']", "scalar", "int", ()),
        ("A[float, 'x']", "scalar", "float", ()),
        ("A[bool, 'x']", "bool", "", ()),
        ("A[Optional[bool], 'x']", "bool", "", ()),
        ("A[int | None, 'x']", "scalar", "int", ()),
        ("A[Union[int, None], 'x']", "scalar", "int", ()),
        ("A[Union[int, str], 'x']", "scalar", "str", ()),
        ("A[typing.List[int], 'x']", "list", "int", ()),
        ("A[Optional[list[str]], 'x']", "list", "str", ()),
        ("A[List[dict], 'x']", "list", "str", ()),
        ("A[Literal['a', 'b'], 'x']", "literal", "str", ("a", "b")),
        ("A[Optional[Literal[1]], 'x']", "literal", "str", (1,)),
        ("A[Dict[str, int], 'x']", "scalar", "str", ()),
        ("Annotated[SomeClass, 'x']", "scalar", "str", ()),
        ("int", "scalar", "int", ()),
    ],
)
def test_the_type_of_a_field_is_what_argparse_needs_of_it(
    annotation: str, kind: str, element: str, literal: tuple[Any, ...]
) -> None:
    found = fields(f"name: {annotation} = None")["name"]
    assert (found.kind, found.element, found.literal) == (kind, element, literal)


@pytest.mark.parametrize(
    ("annotation", "keywords"),
    [
        ("A[int, 'Help.']", {"help": "'Help.'"}),
        ("A[int, f'Help {x}.']", {"help": "f'Help {x}.'"}),
        ("A[int, Arg(help='Help.', nargs=2, choices=None)]", {"help": "'Help.'", "nargs": "2"}),
        ("A[int, arg_utils.Arg()]", {}),
        ("A[int, Derived(doc='x')]", None),
        ("A[int, Derived(doc='x'), Arg(help='y')]", {"help": "'y'"}),
        ("A[int, 3]", {"help": "3"}),
        ("A[int, SomeName]", None),
        ("A[int]", None),
        ("Other[int, 'x']", None),
        ("int", None),
    ],
)
def test_a_text_or_arg_makes_a_field_an_option(annotation: str, keywords: dict[str, str] | None) -> None:
    arg = fields(f"name: {annotation}")["name"].arg
    assert (None if arg is None else {key: ast.unparse(node) for key, node in arg.items()}) == keywords


def test_a_field_keeps_its_line_and_default() -> None:
    found = fields("plain = 1\na: int\nb: A[int, 'x'] = 5")
    assert list(found) == ["a", "b"]
    assert (found["a"].default, found["b"].line) == (None, 4)
    assert ast.unparse(found["b"].default or ast.Constant(None)) == "5"


def test_a_field_declared_twice_keeps_its_place_and_its_last_declaration() -> None:
    found = fields("a: A[int, 'x'] = 1\nb: A[int, 'x'] = 2\na: A[float, 'x'] = 3")
    assert [(name, field.element) for name, field in found.items()] == [("a", "float"), ("b", "int")]


NAMESPACES = "class One:\n    a: int\n    b: int\nclass Two:\n    c: int\n_INPUT_NAMESPACES = [One, Two]\n"


def test_listed_namespaces_go_before_the_class_itself() -> None:
    assert list(fields("own: int", NAMESPACES)) == ["a", "b", "c"]


def test_the_order_of_the_constructor_is_kept_where_there_is_one() -> None:
    order = "POSITIONAL_FIELD_ORDER = ('c', 'gone', 'b')\n"
    assert list(fields("own: int", NAMESPACES, order=order)) == ["c", "b", "a"]
