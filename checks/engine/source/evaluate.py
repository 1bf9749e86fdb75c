"""Evaluate an expression of the engine's source: constants, enumerations, containers, small functions.

This is not an interpreter: it supports the few forms of choices and defaults, and raises Unresolved for all others.
`scope` looks up names; `arguments` is the main caller.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterable
from typing import Any

from checks.engine.source.values import (
    WELL_KNOWN,
    Class,
    Function,
    Member,
    Module,
    Names,
    Opaque,
    Unresolved,
    bound_names,
    dotted,
)

OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
CONTAINERS: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "sorted": sorted,
    "dict": dict,
}
TYPES = ("str", "int", "float", "bool")
METHODS = ("lower", "upper", "strip", "keys", "values", "items", "copy")


def evaluate(node: ast.expr | None, scope: Names, local: dict[str, Any] | None = None) -> Any:
    """Return the value of an expression with the names of `scope` and `local`. Raises Unresolved with its position."""
    if node is None:
        raise Unresolved(f"{scope.path}: missing value")
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise Unresolved(f"{scope.path}:{node.lineno}: unsupported {type(node).__name__}")
    try:
        return handler(node, scope, local or {})
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
        raise Unresolved(f"{scope.path}:{node.lineno}: {error!r}") from error


def extended(value: Any, statement: ast.stmt, scope: Names) -> Any:
    """Return `value` after `value += …`, `.append(…)`, `.extend(…)` or `.add(…)` at module level."""
    if isinstance(statement, ast.AugAssign):
        return value + evaluate(statement.value, scope)
    call = statement.value if isinstance(statement, ast.Expr) else None
    method = call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""
    if not isinstance(call, ast.Call) or method not in {"append", "extend", "add", "update"}:
        return value
    item = evaluate(call.args[0], scope)
    return type(value)([*value, *(iterate(item) if method in {"extend", "update"} else [item])])


def iterate(value: Any) -> Iterable[Any]:
    """Return the elements of a container, or the members of an enumeration."""
    return members(value) if isinstance(value, Class) else value


def members(cls: Class) -> list[Member]:
    """Return the members of an enumeration in order; `auto()` counts from 1."""
    result: list[Member] = []
    for statement in cls.node.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(target, ast.Name) or target.id.startswith("_"):
            continue
        value = statement.value  # type: ignore[attr-defined]
        automatic = isinstance(value, ast.Call) and dotted(value.func).endswith("auto")
        member_value = len(result) + 1 if automatic else evaluate(value, cls.scope, _class_names(cls))
        result.append(Member(target.id, member_value))
    return result


def attribute(value: Any, name: str) -> Any:
    """Return `value.name` for classes, enumeration members and modules. Raises Unresolved."""
    if isinstance(value, Class):
        return _class_attribute(value, name)
    if isinstance(value, Member):
        return getattr(value, name)
    if isinstance(value, Module) and value.scope is not None:
        return value.scope.lookup(name)
    if isinstance(value, (Module, Opaque)):
        full = f"{value.name}.{name}"
        return WELL_KNOWN.get(full, Opaque(full))
    raise Unresolved(f"{type(value).__name__} has no attribute {name}")


def _class_attribute(cls: Class, name: str) -> Any:
    for statement in reversed(cls.node.body):
        if name not in bound_names(statement):
            continue
        if isinstance(statement, ast.FunctionDef):
            return Function(statement, cls.scope)
        value = evaluate(getattr(statement, "value", None), cls.scope, _class_names(cls))
        return Member(name, value) if any("Enum" in dotted(b) for b in cls.node.bases) else value
    for base in cls.node.bases:
        parent = evaluate(base, cls.scope)
        if isinstance(parent, Class):
            return _class_attribute(parent, name)
    raise Unresolved(f"{cls.scope.path}: class {cls.node.name} has no {name}")


def _class_names(cls: Class) -> dict[str, Any]:
    """Return the plain constants of a class body, which later lines of the same body may use."""
    names: dict[str, Any] = {}
    for statement in cls.node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            try:
                names[statement.targets[0].id] = evaluate(statement.value, cls.scope, names)
            except Unresolved:
                continue
    return names


def _constant(node: Any, _scope: Names, _local: dict[str, Any]) -> Any:
    return node.value


def _name(node: Any, scope: Names, local: dict[str, Any]) -> Any:
    if node.id in local:
        return local[node.id]
    return Opaque(node.id) if node.id in TYPES else scope.lookup(node.id)


def _attribute(node: Any, scope: Names, local: dict[str, Any]) -> Any:
    return attribute(evaluate(node.value, scope, local), node.attr)


def _display(node: Any, scope: Names, local: dict[str, Any]) -> Any:
    items: list[Any] = []
    for element in node.elts:
        if isinstance(element, ast.Starred):
            items.extend(iterate(evaluate(element.value, scope, local)))
        else:
            items.append(evaluate(element, scope, local))
    return {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)](items)


def _mapping(node: Any, scope: Names, local: dict[str, Any]) -> Any:
    result: dict[Any, Any] = {}
    for key, item in zip(node.keys, node.values):  # noqa: B905 (Python 3.9 has no strict=)
        if key is None:
            result.update(evaluate(item, scope, local))
            continue
        try:
            value = evaluate(item, scope, local)
        except Unresolved:  # a table of classes, of which the engine lists only the keys
            value = Opaque(ast.unparse(item))
        result[evaluate(key, scope, local)] = value
    return result


def _binary(node: Any, scope: Names, local: dict[str, Any]) -> Any:
    function = OPERATORS[type(node.op)]
    return function(evaluate(node.left, scope, local), evaluate(node.right, scope, local))


def _unary(node: Any, scope: Names, local: dict[str, Any]) -> Any:
    return OPERATORS[type(node.op)](evaluate(node.operand, scope, local))


def _subscript(node: Any, scope: Names, local: dict[str, Any]) -> Any:
    return evaluate(node.value, scope, local)[evaluate(node.slice, scope, local)]


def _joined(node: Any, scope: Names, local: dict[str, Any]) -> str:
    """Return the text of an f-string; a part without a known value is shown as its source in braces."""
    parts: list[str] = []
    for piece in node.values:
        if isinstance(piece, ast.Constant):
            parts.append(str(piece.value))
            continue
        try:
            parts.append(str(evaluate(piece.value, scope, local)))
        except Unresolved:
            parts.append("{" + ast.unparse(piece.value) + "}")
    return "".join(parts)


def _comprehension(node: Any, scope: Names, local: dict[str, Any]) -> Any:
    clause = node.generators[0]
    if len(node.generators) != 1 or clause.ifs or not isinstance(clause.target, ast.Name):
        raise Unresolved(f"{scope.path}:{node.lineno}: unsupported comprehension")
    items = []
    for item in iterate(evaluate(clause.iter, scope, local)):
        items.append(evaluate(node.elt, scope, {**local, clause.target.id: item}))
    return items


def _call(node: Any, scope: Names, local: dict[str, Any]) -> Any:
    name = dotted(node.func)
    if name in CONTAINERS:
        return CONTAINERS[name](iterate(evaluate(node.args[0], scope, local)) if node.args else ())
    if name.split(".")[-1] == "field":
        return _field_default(node, scope, local)
    if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS and not node.args:
        return getattr(evaluate(node.func.value, scope, local), node.func.attr)()
    function = evaluate(node.func, scope, local)
    if isinstance(function, Function) and not node.args and not node.keywords:
        return _returned(function)
    raise Unresolved(f"{scope.path}:{node.lineno}: unsupported call of {name or 'an expression'}")


def _field_default(node: Any, scope: Names, local: dict[str, Any]) -> Any:
    """Return the default of `dataclasses.field(…)` or `msgspec.field(…)`."""
    keywords = {k.arg: k.value for k in node.keywords}
    if "default" in keywords:
        return evaluate(keywords["default"], scope, local)
    factory = keywords.get("default_factory")
    if isinstance(factory, ast.Lambda):
        return evaluate(factory.body, scope, local)
    return CONTAINERS[dotted(factory)]() if factory is not None else None


def _returned(function: Function) -> Any:
    """Return the value of the first top-level `return` of a function without arguments; inner imports are applied.

    A `return` inside an `if` is ignored: it is a shortcut for a loaded module, with the same value.
    """
    local: dict[str, Any] = {}
    for statement in function.node.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            for name in bound_names(statement):
                local[name] = function.scope.imported(statement, name)
        elif isinstance(statement, ast.Return):
            return evaluate(statement.value, function.scope, local)
    raise Unresolved(f"{function.scope.path}: {function.node.name} has no top-level return")


HANDLERS: dict[type, Any] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.List: _display,
    ast.Tuple: _display,
    ast.Set: _display,
    ast.Dict: _mapping,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Subscript: _subscript,
    ast.JoinedStr: _joined,
    ast.ListComp: _comprehension,
    ast.Call: _call,
}
