"""Look up the module-level names of one engine file; each is evaluated at its first look-up.

Imports are followed inside the package, so that `choices.py` and parser enumerations are found where they are defined.
`evaluate` evaluates expressions.
"""

from __future__ import annotations

import ast
from typing import Any

from checks.engine.source.evaluate import evaluate, extended
from checks.engine.source.tree import SourceTree
from checks.engine.source.values import WELL_KNOWN, Class, Function, Module, Opaque, Unresolved, bound_names, flat


class Scope:
    """The names of one file. Scopes reached through imports are shared, so every file is read once."""

    def __init__(self, tree: SourceTree, path: str, known: dict[str, Scope] | None = None) -> None:
        self.tree = tree
        self.path = path
        self._known = {} if known is None else known
        self._known[path] = self
        self._bindings: dict[str, list[ast.stmt]] | None = None
        self._values: dict[str, Any] = {}

    def lookup(self, name: str) -> Any:
        """Return the value of a module-level name. Raises Unresolved."""
        if name not in self._values:
            statements = self._statements().get(name)
            self._values[name] = self._bind(name, statements) if statements else self._from_star(name)
        return self._values[name]

    def imported(self, statement: ast.Import | ast.ImportFrom, name: str) -> Any:
        """Return the value that an import statement binds to `name`. Raises Unresolved."""
        alias = next(a for a in statement.names if (a.asname or a.name.split(".")[0]) == name)
        if isinstance(statement, ast.Import):
            return Module(alias.name if alias.asname else name, None)
        base = self._package_path(statement)
        if base is None:
            full = f"{statement.module}.{alias.name}"
            return WELL_KNOWN.get(full, Opaque(full))
        inner = self._file_of(f"{base}/{alias.name}" if base else alias.name)
        if inner is not None:
            return Module(alias.name, self._sibling(inner))
        outer = self._file_of(base)
        if outer is None:
            raise Unresolved(f"{self.path}: unknown module {base}")
        return self._sibling(outer).lookup(alias.name)

    def _statements(self) -> dict[str, list[ast.stmt]]:
        if self._bindings is None:
            self._bindings = {}
            module = self.tree.parse(self.path)
            for statement in flat(module.body if module else []):
                for name in bound_names(statement):
                    self._bindings.setdefault(name, []).append(statement)
        return self._bindings

    def _bind(self, name: str, statements: list[ast.stmt]) -> Any:
        """Apply the statements that change `name` in order: the last binding wins, `+=` and `.append` extend."""
        value: Any = None
        bound = False
        for statement in statements:
            if isinstance(statement, (ast.AugAssign, ast.Expr)):
                value = extended(value, statement, self) if bound else value
                continue
            if bound and isinstance(statement, (ast.Import, ast.ImportFrom)):
                continue  # the fallback of a try/except import
            value, bound = self._value_of(statement, name), True
        if not bound:
            raise Unresolved(f"{self.path}: {name} is never bound")
        return value

    def _value_of(self, statement: ast.stmt, name: str) -> Any:
        if isinstance(statement, ast.ClassDef):
            return Class(statement, self)
        if isinstance(statement, ast.FunctionDef):
            return Function(statement, self)
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            return self.imported(statement, name)
        return evaluate(getattr(statement, "value", None), self)

    def _from_star(self, name: str) -> Any:
        for statement in self._statements().get("*", []):
            base = self._package_path(statement)  # type: ignore[arg-type]
            path = None if base is None else self._file_of(base)
            if path is None:
                continue
            try:
                return self._sibling(path).lookup(name)
            except Unresolved:
                continue
        raise Unresolved(f"{self.path}: unknown name {name}")

    def _sibling(self, path: str) -> Scope:
        return self._known.get(path) or Scope(self.tree, path, self._known)

    def _package_path(self, statement: ast.ImportFrom) -> str | None:
        """Return the path of the imported module without suffix, relative to the package; None for other packages."""
        parts = (statement.module or "").split(".")
        if statement.level:
            folder = self.path.split("/")[: -statement.level]
            return "/".join(folder + [p for p in parts if p])
        return "/".join(parts[1:]) if parts[0] == "sglang" else None

    def _file_of(self, module: str) -> str | None:
        for path in (f"{module}.py", f"{module}/__init__.py" if module else "__init__.py"):
            if self.tree.has(path):
                return path
        return None
