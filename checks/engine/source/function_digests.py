"""Digest every function of an engine's source, to find the releases in which a function changed.

A digest does not depend on the function's position, comments or layout, but on its docstring, as part of its code.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator

from checks.engine.source.feature_rows import ROOTS
from checks.engine.source.tree import SourceTree


def function_digests(tree: SourceTree) -> dict[tuple[str, str], str]:
    """Return (file inside the package, Class.method) → digest; of equal names in a file the last one counts."""
    found: dict[tuple[str, str], str] = {}
    for path in tree.paths():
        module = tree.parse(path) if path.startswith(ROOTS) else None
        if module is not None:
            found.update({(path, name): _digest(node) for name, node in _functions(module, ())})
            tree.forget(path)
    return found


def _functions(node: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = (*names, child.name)
            if not isinstance(child, ast.ClassDef):
                yield ".".join(inner), child
            yield from _functions(child, inner)
        else:
            yield from _functions(child, names)


def _digest(node: ast.AST) -> str:
    return hashlib.blake2b(ast.dump(node).encode(), digest_size=6).hexdigest()
