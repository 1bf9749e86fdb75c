"""Determine the effect of an argparse action on a flag: number of words, default, and whether it is deprecated.

The action classes of the engine are read from its source, because their `__init__` sets `nargs` and `default`.
"""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

from checks.engine.source.evaluate import evaluate
from checks.engine.source.values import Class, Names, Unresolved, dotted


class Action(NamedTuple):
    """The effect of an action on the argument that uses it."""

    name: str
    nargs: Any = None
    default: Any = None
    negatable: bool = False  # also registers --no-x


STANDARD = {
    "store": Action("store"),
    "store_true": Action("store_true", 0, False),
    "store_false": Action("store_false", 0, True),
    "append": Action("append"),
    "count": Action("count", 0),
    "version": Action("version", 0, "==SUPPRESS=="),
    "BooleanOptionalAction": Action("BooleanOptionalAction", 0, negatable=True),
}
# Matches a help text that deprecates its own flag, not another one ("Replaces the deprecated --grpc-mode").
DEPRECATED = re.compile(
    r"^\W*(?:note: (?:the )?['`]?-[\w-]+['`]? is )?(?:now )?deprecated|\[deprecated|\(deprecated", re.I
)
INSTEAD = re.compile(r"(?:use|in favou?r of|alias (?:for|of)|replaced by)\s+['`]?(--[a-z][\w-]*(?:=[\w{},]+)?)", re.I)


def action_of(node: ast.expr | None, scope: Names) -> Action:
    """Return the action of an `action=` keyword; an unknown class behaves like `store`."""
    if node is None:
        return STANDARD["store"]
    if isinstance(node, ast.Constant):
        return STANDARD.get(str(node.value), Action(str(node.value)))
    name = dotted(node).split(".")[-1]
    if name in STANDARD:
        return STANDARD[name]
    try:
        cls = evaluate(node, scope)
    except Unresolved:
        return Action(name)
    return _engine_action(cls, name) if isinstance(cls, Class) else Action(name)


def deprecation(flags: list[str], text: str, action: Action, values: dict[str, Any]) -> tuple[bool, str | None]:
    """Return whether the flag is deprecated, and the replacement that the source names."""
    deprecated = action.name.startswith("Deprecated") or bool(DEPRECATED.search(text))
    if not deprecated:
        return False, None
    if values.get("new_flag"):
        return True, str(values["new_flag"])
    named = INSTEAD.search(str(values.get("error_message") or "")) or INSTEAD.search(text)
    replacement = named.group(1) if named else None
    return True, None if replacement in flags else replacement


def _engine_action(cls: Class, name: str) -> Action:
    init = next((n for n in cls.node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
    known: dict[str, Any] = {}
    if init is not None:
        names = [a.arg for a in init.args.args][-len(init.args.defaults) :] if init.args.defaults else []
        pairs = list(zip(names, init.args.defaults))  # noqa: B905 (Python 3.9 has no strict=)
        pairs += [(k.arg or "", k.value) for n in ast.walk(init) if isinstance(n, ast.Call) for k in n.keywords]
        for key, value in pairs:
            if key in {"nargs", "default"} and isinstance(value, ast.Constant):
                known[key] = value.value
    return Action(name, known.get("nargs"), known.get("default"))
