"""Read the engine's environment variables: declared ones, names that are only mentioned, and deprecated ones.

`srt/environ.py` declares variables (0.5.3 and later); earlier code reads `os.environ` in place. A quoted SGLANG_ or
SGL_ name anywhere in the serving code counts as known, so that few valid names are reported as unknown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from checks.engine.source.tree import SourceTree
from checks.engine.source.values import dotted, flat

ENVIRON = "srt/environ.py"
QUOTED = re.compile(r"""["'](SGL(?:ANG)?_[A-Z0-9][A-Z0-9_]*)["']""")
# The image and video server and the tests read variables that serving does not.
ELSEWHERE = ("multimodal_gen/", "test/")
RENAME_HELPER = "_print_deprecated_env"
NOTE_LENGTH = 200


def read_environment(tree: SourceTree) -> dict[str, Any]:
    """Return `declared` name → type, `mentioned` names, `deprecated` name → replacement and note.

    `sgl_prefix_rewritten` is whether the engine reads SGL_X as SGLANG_X.
    """
    declared = _declared(tree)
    deprecated = dict(_deprecated(tree))
    mentioned: set[str] = set()
    for path in tree.paths():
        if not path.startswith(ELSEWHERE):
            mentioned.update(QUOTED.findall(tree.read(path) or ""))
    rewritten = 'startswith("SGL_")' in (tree.read(ENVIRON) or "")
    return {
        "declared": declared,
        "mentioned": sorted(mentioned - set(declared) - set(deprecated)),
        "deprecated": deprecated,
        "sgl_prefix_rewritten": rewritten,
    }


def _declared(tree: SourceTree) -> dict[str, str]:
    types: dict[str, str] = {}
    for statement in _class_body(tree, "Envs"):
        if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
            continue
        target, call = statement.targets[0], statement.value
        if isinstance(target, ast.Name):
            types[target.id] = dotted(call.func)
    return types


def _deprecated(tree: SourceTree) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read all four forms of a deprecation in the engine: two helper functions, a table, an alias of a declaration."""
    module = tree.parse(ENVIRON)
    old_first = _old_name_first(module)
    for node in ast.walk(module) if module else ():
        if isinstance(node, ast.Call):
            yield from _announced(node, old_first)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Dict):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if "deprecated" in dotted(target).lower():
                for key, value in zip(node.value.keys, node.value.values):  # noqa: B905 (Python 3.9)
                    if isinstance(key, ast.Constant):
                        yield str(key.value), _entry(value)
    for statement in _class_body(tree, "Envs"):
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            for keyword in statement.value.keywords:
                if keyword.arg == "deprecated_name" and isinstance(keyword.value, ast.Constant):
                    yield str(keyword.value.value), {"replacement": dotted(statement.targets[0]), "note": ""}


def _old_name_first(module: ast.Module | None) -> bool:
    """Whether `_print_deprecated_env` takes (old, new): 0.5.11 swapped its parameters to this order."""
    for node in ast.walk(module) if module else ():
        if isinstance(node, ast.FunctionDef) and node.name == RENAME_HELPER and node.args.args:
            return node.args.args[0].arg == "old_name"
    return True


def _announced(call: ast.Call, old_first: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    words = [str(a.value) for a in call.args if isinstance(a, ast.Constant)]
    if words and dotted(call.func) == RENAME_HELPER:
        old, new = (words[0], words[1:]) if old_first else (words[-1], words[:-1])
        yield old, {"replacement": new[0] if new else None, "note": ""}
    elif len(words) == 2 and dotted(call.func) == "_warn_deprecated_env_to_cli_flag":
        yield words[0], {"replacement": None, "note": words[1][:NOTE_LENGTH]}


def _entry(value: ast.expr) -> dict[str, Any]:
    if isinstance(value, ast.Constant):
        return {"replacement": str(value.value), "note": ""}
    entry: dict[str, Any] = {"replacement": None, "note": ""}
    for keyword in value.keywords if isinstance(value, ast.Call) else ():
        if keyword.arg in entry and isinstance(keyword.value, ast.Constant):
            entry[keyword.arg] = str(keyword.value.value)[:NOTE_LENGTH]
    return entry


def _class_body(tree: SourceTree, name: str) -> Iterator[ast.stmt]:
    module = tree.parse(ENVIRON)
    for node in module.body if module else ():
        if isinstance(node, ast.ClassDef) and node.name == name:
            yield from flat(node.body)
