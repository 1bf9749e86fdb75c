"""Define the values of the engine's expressions that are not plain Python values: classes, functions, modules, members.

`evaluate` evaluates expressions; `scope` looks up names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol


class Unresolved(Exception):
    """An expression has an unsupported form; the text contains the reason."""


class Names(Protocol):
    """The names of one module of the engine; `scope.Scope` implements this protocol."""

    path: str

    def lookup(self, name: str) -> Any:
        """Return the value of a module-level name. Raises Unresolved."""

    def imported(self, statement: ast.Import | ast.ImportFrom, name: str) -> Any:
        """Return the value that an import statement binds to `name`. Raises Unresolved."""


class Member(NamedTuple):
    """A member of an enumeration."""

    name: str
    value: Any


class Class(NamedTuple):
    """A class definition with the names of its module."""

    node: ast.ClassDef
    scope: Names


class Function(NamedTuple):
    """A function definition with the names of its module."""

    node: ast.FunctionDef
    scope: Names


class Module(NamedTuple):
    """A module of the engine, or of another package (then `scope` is None)."""

    name: str
    scope: Names | None


class Opaque(NamedTuple):
    """A value that is only shown by its name: a type, a parser function, an object of another package."""

    name: str


# sys.maxsize has the value of the engine's machine, which is 64 bit.
WELL_KNOWN = {"sys.maxsize": 2**63 - 1, "argparse.SUPPRESS": "==SUPPRESS=="}


def dotted(node: ast.AST) -> str:
    """Return `a.b.c` for a name or attribute; "" for any other node."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def bound_names(statement: ast.AST) -> list[str]:
    """Return the names that a statement binds or changes in its own scope; "*" for a star import."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [a.asname or a.name.split(".")[0] for a in statement.names]
    if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        return [t.id for t in statement.targets if isinstance(t, ast.Name)]
    if isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        return [statement.target.id] if isinstance(statement.target, ast.Name) else []
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return [call.func.value.id] if isinstance(call.func.value, ast.Name) else []
    return []


MUTATORS = ("append", "extend", "add", "update")


def flat(body: list[ast.stmt], conditional: bool = False) -> Iterator[ast.stmt]:
    """Return the statements of a body, including those inside `if` and `try`: a conditional import binds a name too.

    Statements that change a list under an `if` are left out: a setting that is off by default guards them in the engine
    (`token_oracle` in the sampling backends).
    """
    for statement in body:
        if not (conditional and _mutates(statement)):
            yield statement
        if isinstance(statement, (ast.If, ast.Try)):
            inside = conditional or isinstance(statement, ast.If)
            yield from flat(statement.body, inside)
            for handler in getattr(statement, "handlers", []):
                yield from flat(handler.body, inside)
            yield from flat(statement.orelse, inside)


def _mutates(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and dotted(call.func).split(".")[-1] in MUTATORS
