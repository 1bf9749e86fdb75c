"""The engine's command line out of its source, in the three styles it has been declared in.

To 0.5.13: `parser.add_argument(...)` calls. 0.5.14 to 0.5.19: fields `name: A[type, Arg(...)]` of the class
`ServerArgs`. From 0.5.20: the same fields in the namespace classes that `_INPUT_NAMESPACES` lists. The annotated
fields are read in `annotated`; what an argparse action class does to a flag is in `actions`.
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
RETIRED_KEYWORDS = ("new_flag", "error_message", "const_value")  # of the engine's own actions for retired flags
SUPPRESS = "==SUPPRESS=="


class Parser:
    """What `add_cli_args` does, statement by statement: arguments in order, local names, gaps."""

    def __init__(self, scope: Scope, server_args: Class) -> None:
        self.scope = scope
        self.cls = server_args
        self.local: dict[str, Any] = {"ServerArgs": server_args}
        self.arguments: list[dict[str, Any]] = []
        self.unresolved: list[str] = []
        self.styles: set[str] = set()
        self.fields: dict[str, Field] = {}


def read_arguments(tree: SourceTree) -> dict[str, Any]:
    """`{"style": [...], "arguments": [...], "unresolved": [...]}`; raises SourceError when nothing is found."""
    module = tree.parse(SERVER_ARGS)
    scope = Scope(tree, SERVER_ARGS)
    nodes = [n for n in (module.body if module else []) if isinstance(n, ast.ClassDef)]
    cls = next((Class(n, scope) for n in nodes if n.name == "ServerArgs"), None)
    method = None if cls is None else _method(cls.node, "add_cli_args")
    if cls is None or method is None:
        raise SourceError(f"{tree.origin}: {SERVER_ARGS} has no ServerArgs.add_cli_args this Python can read")
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
    got = {key: _worth(keywords.get(key), parser, f"{flags[0]} {key}") for key in (*KEYWORDS, *RETIRED_KEYWORDS)}
    action = action_of(keywords.get("action"), parser.scope)
    got["dest"] = got["dest"] or _dest(flags)
    got["type"] = _type_name(keywords.get("type"))
    got["source"] = f"{parser.scope.path}:{call.lineno}"
    return _argument(flags, got, action, {k for k in keywords if k})


def _from_field(field: Field, parser: Parser) -> dict[str, Any]:
    """The rules of `add_cli_args_from_dataclass`, srt/arg_groups/arg_utils.py."""
    arg = field.arg or {}
    name = "--" + field.name.replace("_", "-")
    worth = {
        k: _worth(arg.get(k), parser, f"{name} {k}", field.scope)
        for k in ("choices", "nargs", "help", "const", "required", "aliases", "cli_name", "action_kwargs")
    }
    default = _worth(field.default, parser, f"{name} default", field.scope)
    got: dict[str, Any] = {**worth, "dest": field.name, "type": None, "default": default}
    got["source"] = f"{field.scope.path}:{field.line}"
    flags = [worth["cli_name"] or name, *(worth["aliases"] or [])]
    given = {k for k in ("nargs", "const") if k in arg} | ({"default"} if field.default is not None else set())
    if "action" in arg:
        extra = worth["action_kwargs"] or {}
        got.update({k: (v.name if isinstance(v, Opaque) else v) for k, v in extra.items()})
        got["choices"] = extra.get("choices")
        return _argument(flags, got, action_of(arg["action"], field.scope), given | set(extra))
    if field.kind == "bool":
        got.update(choices=None, nargs=None, required=False)
        return _argument(flags, got, STANDARD["store_true"], given)
    parsed = _type_name(arg.get("type_parser"))
    if field.kind == "literal":
        got.update(choices=worth["choices"] or list(field.literal), nargs=None)
        first = next((type(v).__name__ for v in field.literal), "str")
        got["type"] = parsed or (first if first in {"int", "float"} else "str")
    elif field.kind == "list" and parsed is None:
        got.update(nargs=worth["nargs"] or "+", type=field.element)
    else:
        got["type"] = parsed or field.element
        got["required"] = field.default is None if worth["required"] is None else worth["required"]
    return _argument(flags, got, STANDARD["store"], given)


def _argument(flags: list[str], got: dict[str, Any], action: Action, given: set[str]) -> dict[str, Any]:
    nargs = got["nargs"] if "nargs" in given or got["nargs"] is not None else action.nargs
    default = got["default"] if "default" in given else action.default
    if action.negatable:
        flags = [*flags, *("--no-" + f[2:] for f in flags if f.startswith("--"))]
    text = got["help"] if isinstance(got["help"], str) else ""
    deprecated, replacement = deprecation(flags, text, action, got)
    return {
        "flags": flags,
        "dest": got["dest"],
        "type": got["type"],
        "nargs": nargs,
        "choices": _plain_choices(got["choices"]),
        "default": _plain(default),
        "const": _plain(got.get("const_value") if got.get("const_value") is not None else got.get("const")),
        "required": bool(got["required"]),
        "takes_value": nargs != 0,
        "action": action.name,
        "hidden": text == SUPPRESS,
        "deprecated": deprecated,
        "replacement": replacement,
        "refuses": got.get("error_message"),
        "help": "" if text == SUPPRESS else first_sentence(text),
        "source": got["source"],
    }


def first_sentence(text: str) -> str:
    """The first sentence of a help text, at most HELP_LENGTH characters."""
    words = " ".join(text.split())
    end = words.find(". ", 25)  # not after "Deprecated." alone
    words = words[: end + 1] if end > 0 else words
    return words if len(words) <= HELP_LENGTH else words[: HELP_LENGTH - 1].rstrip() + "…"


def _worth(node: ast.expr | None, parser: Parser, what: str, scope: Any = None) -> Any:
    """Value of a keyword; what cannot be told is noted and counts as not given."""
    if node is None:
        return None
    if isinstance(node, ast.Call) and dotted(node.func) == "_declared_default":
        name = ast.literal_eval(node.args[0])  # the E3 way to say ServerArgs.<name>
        field = parser.fields[name]
        return _worth(field.default, parser, what, field.scope)
    try:
        return evaluate(node, scope or parser.scope, parser.local)
    except Unresolved as gap:
        parser.unresolved.append(f"{what}: {gap}")
        return None


def _truth(field: Field, key: str) -> bool:
    node = (field.arg or {}).get(key)
    return isinstance(node, ast.Constant) and bool(node.value)


def _dest(flags: list[str]) -> str:
    """argparse: the first long option, else the first one; dashes become underscores."""
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
    """A value JSON can hold."""
    if isinstance(value, Member):
        return _plain(value.value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
