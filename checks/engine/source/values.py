"""What an expression of the engine's source can be worth besides plain Python values.

Evaluating expressions is the business of `evaluate`; where names come from, of `scope`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol


class Unresolved(Exception):
    """An expression of a form that is not understood, with the reason."""


class Names(Protocol):
    """The names of one module of the engine; `scope.Scope` is the implementation."""

    path: str

    def lookup(self, name: str) -> Any:
        """Value of a module-level name; raises Unresolved."""

    def imported(self, statement: ast.Import | ast.ImportFrom, name: str) -> Any:
        """The value an import statement gives to `name`; raises Unresolved."""


class Member(NamedTuple):
    """A member of an enumeration."""

    name: str
    value: Any


class Class(NamedTuple):
    """A class definition together with the module it stands in."""

    node: ast.ClassDef
    scope: Names


class Function(NamedTuple):
    """A function definition together with the module it stands in."""

    node: ast.FunctionDef
    scope: Names


class Module(NamedTuple):
    """A module of the engine (`scope` set) or of anything else (only its name)."""

    name: str
    scope: Names | None


class Opaque(NamedTuple):
    """A thing that is only ever shown by name: a type, a parser function, something of another package."""

    name: str


# sys.maxsize is the engine machine's, which is 64 bit
WELL_KNOWN = {"sys.maxsize": 2**63 - 1, "argparse.SUPPRESS": "==SUPPRESS=="}


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a name or attribute, "" of anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def bound_names(statement: ast.AST) -> list[str]:
    """Names that a statement binds or changes in its own scope; "*" for a star import."""
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
    """Statements of a body with those inside `if` and `try`: a conditional import binds like any other.

    A change of a list under an `if` is left out: the engine guards those by a setting that is off by default
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
