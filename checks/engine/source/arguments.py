"""Read the engine's command line from its source, in the three styles of declaration that SGLang has used.

Up to 0.5.13: `parser.add_argument(...)` calls. 0.5.14 to 0.5.19: fields `name: A[type, Arg(...)]` of the class
`ServerArgs`. From 0.5.20: the same fields in the namespace classes that `_INPUT_NAMESPACES` lists. `annotated` reads
the annotated fields; `actions` determines the effect of an argparse action class on a flag.
"""

from __future__ import annotations

import ast
from typing import Any

from checks.engine.source.actions import STANDARD, Action, action_of, deprecation
from checks.engine.source.annotated import Field, annotated_fields
from checks.engine.source.evaluate import evaluate
from checks.engine.source.scope import Scope
from checks.engine.source.tree import SourceError, SourceTree
from checks.engine.source.values import Class, Member, Opaque, Unresolved, dotted, flat

SERVER_ARGS = "srt/server_args.py"
HELP_LENGTH = 160
KEYWORDS = ("choices", "default", "nargs", "dest", "required", "help", "const")
RETIRED_KEYWORDS = ("new_flag", "error_message", "const_value")  # of the engine's action classes for retired flags
SUPPRESS = "==SUPPRESS=="


class Parser:
    """State while the statements of `add_cli_args` are followed: arguments in order, local names, gaps."""

    def __init__(self, scope: Scope, server_args: Class) -> None:
        self.scope = scope
        self.cls = server_args
        self.local: dict[str, Any] = {"ServerArgs": server_args}
        self.arguments: list[dict[str, Any]] = []
        self.unresolved: list[str] = []
        self.styles: set[str] = set()
        self.fields: dict[str, Field] = {}


def read_arguments(tree: SourceTree) -> dict[str, Any]:
    """Return `{"style": [...], "arguments": [...], "unresolved": [...]}`. Raises SourceError without `add_cli_args`."""
    module = tree.parse(SERVER_ARGS)
    scope = Scope(tree, SERVER_ARGS)
    nodes = [n for n in (module.body if module else []) if isinstance(n, ast.ClassDef)]
    cls = next((Class(n, scope) for n in nodes if n.name == "ServerArgs"), None)
    method = None if cls is None else _method(cls.node, "add_cli_args")
    if cls is None or method is None:
        raise SourceError(
            f"{SERVER_ARGS} in {tree.origin} has no ServerArgs.add_cli_args, or its syntax is newer than this Python"
        )
    parser = Parser(scope, cls)
    _run(method.body, parser)
    return {
        "style": sorted(parser.styles),
        "arguments": parser.arguments,
        "unresolved": parser.unresolved,
    }


def _method(node: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == name), None)


def _run(body: list[ast.stmt], parser: Parser) -> None:
    for statement in flat(body):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            try:
                value = evaluate(statement.value, parser.scope, parser.local)
            except Unresolved as gap:
                value = Opaque(str(gap))
            parser.local[statement.targets[0].id] = value
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            _called(statement.value, parser)


def _called(call: ast.Call, parser: Parser) -> None:
    name = dotted(call.func).split(".")[-1]
    if name == "add_argument":
        parser.styles.add("add_argument")
        parser.arguments.append(_from_call(call, parser))
    elif name == "add_cli_args_from_dataclass":
        parser.fields = annotated_fields(parser.scope, parser.cls)
        spaces = any(f.scope.path != SERVER_ARGS for f in parser.fields.values())
        parser.styles.update({"annotated", "namespaces"} if spaces else {"annotated"})
        for field in parser.fields.values():
            if field.arg is not None and not _truth(field, "no_cli"):
                parser.arguments.append(_from_field(field, parser))


def _from_call(call: ast.Call, parser: Parser) -> dict[str, Any]:
    keywords = {k.arg: k.value for k in call.keywords if k.arg}
    flags = [str(evaluate(a, parser.scope, parser.local)) for a in call.args]
    values = {key: _evaluated(keywords.get(key), parser, f"{flags[0]} {key}") for key in (*KEYWORDS, *RETIRED_KEYWORDS)}
    action = action_of(keywords.get("action"), parser.scope)
    values["dest"] = values["dest"] or _dest(flags)
    values["type"] = _type_name(keywords.get("type"))
    values["source"] = f"{parser.scope.path}:{call.lineno}"
    return _argument(flags, values, action, {k for k in keywords if k})


def _from_field(field: Field, parser: Parser) -> dict[str, Any]:
    """Apply the rules of `add_cli_args_from_dataclass` in srt/arg_groups/arg_utils.py to one field."""
    arg = field.arg or {}
    name = "--" + field.name.replace("_", "-")
    evaluated = {
        k: _evaluated(arg.get(k), parser, f"{name} {k}", field.scope)
        for k in ("choices", "nargs", "help", "const", "required", "aliases", "cli_name", "action_kwargs")
    }
    default = _evaluated(field.default, parser, f"{name} default", field.scope)
    values: dict[str, Any] = {**evaluated, "dest": field.name, "type": None, "default": default}
    values["source"] = f"{field.scope.path}:{field.line}"
    flags = [evaluated["cli_name"] or name, *(evaluated["aliases"] or [])]
    explicit = {k for k in ("nargs", "const") if k in arg} | ({"default"} if field.default is not None else set())
    if "action" in arg:
        action_values = evaluated["action_kwargs"] or {}
        values.update({k: (v.name if isinstance(v, Opaque) else v) for k, v in action_values.items()})
        values["choices"] = action_values.get("choices")
        return _argument(flags, values, action_of(arg["action"], field.scope), explicit | set(action_values))
    if field.kind == "bool":
        values.update(choices=None, nargs=None, required=False)
        return _argument(flags, values, STANDARD["store_true"], explicit)
    parsed = _type_name(arg.get("type_parser"))
    if field.kind == "literal":
        values.update(choices=evaluated["choices"] or list(field.literal), nargs=None)
        first = next((type(v).__name__ for v in field.literal), "str")
        values["type"] = parsed or (first if first in {"int", "float"} else "str")
    elif field.kind == "list" and parsed is None:
        values.update(nargs=evaluated["nargs"] or "+", type=field.element)
    else:
        values["type"] = parsed or field.element
        values["required"] = field.default is None if evaluated["required"] is None else evaluated["required"]
    return _argument(flags, values, STANDARD["store"], explicit)


def _argument(flags: list[str], values: dict[str, Any], action: Action, explicit: set[str]) -> dict[str, Any]:
    nargs = values["nargs"] if "nargs" in explicit or values["nargs"] is not None else action.nargs
    default = values["default"] if "default" in explicit else action.default
    if action.negatable:
        flags = [*flags, *("--no-" + f[2:] for f in flags if f.startswith("--"))]
    text = values["help"] if isinstance(values["help"], str) else ""
    deprecated, replacement = deprecation(flags, text, action, values)
    return {
        "flags": flags,
        "dest": values["dest"],
        "type": values["type"],
        "nargs": nargs,
        "choices": _plain_choices(values["choices"]),
        "default": _plain(default),
        "const": _plain(values.get("const_value") if values.get("const_value") is not None else values.get("const")),
        "required": bool(values["required"]),
        "takes_value": nargs != 0,
        "action": action.name,
        "hidden": text == SUPPRESS,
        "deprecated": deprecated,
        "replacement": replacement,
        "refuses": values.get("error_message"),
        "help": "" if text == SUPPRESS else first_sentence(text),
        "source": values["source"],
    }


def first_sentence(text: str) -> str:
    """Return the first sentence of a help text, at most HELP_LENGTH characters."""
    words = " ".join(text.split())
    end = words.find(". ", 25)  # not after "Deprecated." alone
    words = words[: end + 1] if end > 0 else words
    return words if len(words) <= HELP_LENGTH else words[: HELP_LENGTH - 1].rstrip() + "…"


def _evaluated(node: ast.expr | None, parser: Parser, what: str, scope: Any = None) -> Any:
    """Return the value of a keyword; an unsupported expression is noted in `unresolved` and counts as not given."""
    if node is None:
        return None
    if isinstance(node, ast.Call) and dotted(node.func) == "_declared_default":
        name = ast.literal_eval(node.args[0])  # from 0.5.20: the default of ServerArgs.<name>
        field = parser.fields[name]
        return _evaluated(field.default, parser, what, field.scope)
    try:
        return evaluate(node, scope or parser.scope, parser.local)
    except Unresolved as gap:
        parser.unresolved.append(f"{what}: {gap}")
        return None


def _truth(field: Field, key: str) -> bool:
    node = (field.arg or {}).get(key)
    return isinstance(node, ast.Constant) and bool(node.value)


def _dest(flags: list[str]) -> str:
    """Return argparse's `dest`: the first long option, else the first option, with underscores for dashes."""
    long = next((f for f in flags if f.startswith("--")), flags[0])
    return long.lstrip("-").replace("-", "_")


def _type_name(node: ast.expr | None) -> str | None:
    return None if node is None else (dotted(node).split(".")[-1] or "lambda")


def _plain_choices(value: Any) -> list[Any] | None:
    if value is None:
        return None
    items = [_plain(v) for v in value]
    return sorted(items, key=str) if isinstance(value, (set, frozenset)) else items


def _plain(value: Any) -> Any:
    """Return a value that JSON can represent."""
    if isinstance(value, Member):
        return _plain(value.value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
