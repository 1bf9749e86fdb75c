"""Read fields declared as `name: A[type, "help"]` or `name: A[type, Arg(...)]`, with their type for argparse.

Keyword values remain syntax trees here; `arguments` evaluates them in the scope of the file that declares the field.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from checks.engine.source.evaluate import evaluate, iterate
from checks.engine.source.scope import Scope
from checks.engine.source.values import Class, Names, Unresolved, dotted


class Field(NamedTuple):
    """One annotated field. `arg` is None for a field without a command-line option."""

    name: str
    line: int
    scope: Names
    arg: dict[str, ast.expr] | None
    default: ast.expr | None
    kind: str  # bool, literal, list, scalar
    element: str  # str, int or float: the argparse type of one value
    literal: tuple[Any, ...]


def annotated_fields(scope: Scope, server_args: Class) -> dict[str, Field]:
    """Return the fields in argparse's order: of the listed namespaces from 0.5.20 on, of `ServerArgs` before."""
    try:
        spaces = [c for c in scope.lookup("_INPUT_NAMESPACES") if isinstance(c, Class)]
    except Unresolved:
        return _fields_of(server_args)
    fields: dict[str, Field] = {}
    for space in spaces:
        fields.update(_fields_of(space))
    return _positional(scope, fields)


def _positional(scope: Scope, fields: dict[str, Field]) -> dict[str, Field]:
    """Return the fields in the constructor's order, if the release defines one (`field_order.py`, 0.5.20+)."""
    order = Scope(scope.tree, "srt/arg_groups/field_order.py")
    try:
        known = [name for name in order.lookup("POSITIONAL_FIELD_ORDER") if name in fields]
    except Unresolved:
        return fields
    return {name: fields[name] for name in [*known, *(n for n in fields if n not in set(known))]}


def _fields_of(cls: Class) -> dict[str, Field]:
    """Return the annotated fields of one class; a repeated name keeps its first position and its last declaration."""
    fields: dict[str, Field] = {}
    for statement in cls.node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            fields[statement.target.id] = _field(statement, statement.target.id, cls.scope)
    return fields


def _field(statement: ast.AnnAssign, name: str, scope: Names) -> Field:
    annotation = statement.annotation
    arg: dict[str, ast.expr] | None = None
    if isinstance(annotation, ast.Subscript) and dotted(annotation.value).split(".")[-1] in {"A", "Annotated"}:
        parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        annotation = parts[0]
        arg = next((a for a in map(_metadata, parts[1:]) if a is not None), None)
    kind, element, literal = _kind(_without_none(annotation), scope)
    return Field(name, statement.lineno, scope, arg, statement.value, kind, element, literal)


def _metadata(node: ast.expr) -> dict[str, ast.expr] | None:
    """Return the keywords of `Arg(...)`; a bare text means `Arg(help=text)`; None for metadata of other tools."""
    if isinstance(node, ast.Call):
        if dotted(node.func).split(".")[-1] != "Arg":
            return None
        keywords = {k.arg: k.value for k in node.keywords if k.arg}
        return {k: v for k, v in keywords.items() if not (isinstance(v, ast.Constant) and v.value is None)}
    return {"help": node} if isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp)) else None


def _without_none(node: ast.expr) -> ast.expr:
    """Return `X` for `Optional[X]`, `X | None` and `Union[X, None]`; other unions do not change."""
    if isinstance(node, ast.Subscript) and dotted(node.value).split(".")[-1] == "Optional":
        return node.slice
    options: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        options = [node.left, node.right]
    elif isinstance(node, ast.Subscript) and dotted(node.value).split(".")[-1] == "Union":
        options = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    real = [o for o in options if not (isinstance(o, ast.Constant) and o.value is None)]
    return real[0] if options and len(real) == 1 else node


def _kind(node: ast.expr, scope: Names) -> tuple[str, str, tuple[Any, ...]]:
    name = dotted(node)
    if name == "bool":
        return "bool", "", ()
    if name in {"int", "float", "str"}:
        return "scalar", name, ()
    if isinstance(node, ast.Subscript):
        outer = dotted(node.value).split(".")[-1]
        if outer == "Literal":
            items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return "literal", "str", tuple(iterate([evaluate(i, scope) for i in items]))
        if outer in {"List", "list"}:
            inner = dotted(node.slice)
            return "list", inner if inner in {"int", "float"} else "str", ()
    return "scalar", "str", ()
