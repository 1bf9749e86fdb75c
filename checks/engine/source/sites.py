"""List every statement with which the engine raises, asserts or warns: template, conditions, function, file and line.

A message template contains the source of each inserted expression in braces: `page_size {self.page_size} is too
large`. Literal braces are doubled. `checks.engine.raise_sites` finds the site of a message in a log.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from checks.engine.source.tree import SourceTree
from checks.engine.source.values import dotted

ROOTS = ("srt/", "cli/", "launch_server.py", "utils.py")
# other accelerators, and code that only runs while the engine itself is debugged
OTHER = ("srt/hardware_backend/", "srt/debug_utils/", "srt/kv_canary/", "srt/multimodal/")
LEVELS = ("warning", "error", "exception", "critical", "warning_once", "warn", "print_warning_once", "warning_rank0")
# literal text between placeholders and doubled braces
LITERAL = re.compile(r"(?:^|(?<=\}))[^{}]+")
PERCENT = re.compile(r"%(?:%|[-+#0-9.]*[a-zA-Z])")
TEMPLATE_LENGTH = 400
ANCHOR_DIGITS = 7
CONDITION_LENGTH = 160
MAX_CONDITIONS = 4


class Site(NamedTuple):
    """One raise, assert or warning. `kind` is the exception's name, `assert`, or the log level."""

    kind: str
    message: str
    conditions: tuple[str, ...]  # outermost first
    function: str
    file: str
    line: int
    end: int


def read_sites(tree: SourceTree, roots: tuple[str, ...] = ROOTS) -> Iterator[Site]:
    """Return the sites of all files under `roots`, file by file, in line order."""
    for path in tree.paths():
        module = tree.parse(path) if path.startswith(roots) and not path.startswith(OTHER) else None
        if module is not None:
            yield from sorted(_Walker(path).walk(module), key=lambda site: site.line)
            tree.forget(path)


def row(site: Site) -> str:
    """Return a site as one line of text, which `checks.engine.raise_sites` reads.

    Seven hexadecimal digits contain the offset (4) and the length (3) of the longest literal of the message within the
    line. Tab-separated fields follow: file, line, number of further lines, function, kind, message, conditions.
    """
    head = "\t".join((site.file, str(site.line), str(site.end - site.line), site.function, site.kind, ""))
    start, length = anchor(site.message)
    tail = "\t".join((site.message, *site.conditions))
    return f"{ANCHOR_DIGITS + len(head) + start:04x}{length:03x}{head}{tail}"


def anchor(message: str) -> tuple[int, int]:
    """Return offset and length of the longest literal piece of a template."""
    best = (0, 0)
    for piece in LITERAL.finditer(message):
        if piece.end() - piece.start() > best[1]:
            best = (piece.start(), piece.end() - piece.start())
    return best


class _Walker:
    """Depth-first walk of one file that tracks the enclosing names and conditions."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.names: list[str] = []
        self.conditions: list[str] = []
        self.texts: dict[str, ast.expr] = {}  # name → the expression last assigned to it

    def walk(self, node: ast.AST) -> Iterator[Site]:
        for field in ("test", "body", "handlers", "orelse", "finalbody", "cases"):
            for child in _children(node, field):
                with_condition = self._condition(node, field)
                self.conditions.extend(with_condition)
                yield from self._statement(child)
                del self.conditions[len(self.conditions) - len(with_condition) :]

    def _statement(self, node: ast.AST) -> Iterator[Site]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            outer, self.conditions = self.conditions, []
            self.names.append(node.name)
            yield from self.walk(node)
            self.names.pop()
            self.conditions = outer
            return
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            self.texts[node.targets[0].id] = node.value
        site = self._site(node)
        if site is not None:
            yield site
        yield from self.walk(node)

    def _site(self, node: ast.AST) -> Site | None:
        if isinstance(node, ast.Raise) and node.exc is not None:
            call = node.exc if isinstance(node.exc, ast.Call) else None
            kind = dotted(call.func if call else node.exc).split(".")[-1]
            text = self._text(call.args[0]) if call and call.args else ""
            return self._make(kind, text, node) if kind[:1].isupper() else None
        if isinstance(node, ast.Assert):
            text = self._text(node.msg) if node.msg else ""
            return self._make("assert", text, node, f"not ({_source(node.test)})")
        call = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        level = dotted(call.func).split(".")[-1] if call else ""
        if call is not None and call.args and level in LEVELS:
            text = self._text(call.args[0])
            return self._make(level, _filled(text) if len(call.args) > 1 else text, node)
        return None

    def _text(self, message: ast.expr) -> str:
        return " ".join(template(message, self.texts).split())

    def _make(self, kind: str, text: str, node: Any, *own_conditions: str) -> Site:
        return Site(
            kind=kind,
            message=_cut(text, TEMPLATE_LENGTH),
            conditions=(*self.conditions, *own_conditions)[-MAX_CONDITIONS:],
            function=".".join(self.names),
            file=self.path,
            line=node.lineno,
            end=node.end_lineno or node.lineno,
        )

    def _condition(self, node: ast.AST, field: str) -> list[str]:
        if isinstance(node, ast.If) and field in {"body", "orelse"}:
            test = _source(node.test)
            return [test if field == "body" else f"not ({test})"]
        if isinstance(node, ast.ExceptHandler) and field == "body":
            return [f"except {_source(node.type)}" if node.type else "except"]
        if isinstance(node, ast.While) and field == "body":
            return [_source(node.test)]
        return []


def template(node: ast.expr, texts: dict[str, ast.expr], depth: int = 0) -> str:
    """Return the message template of an expression; a name is replaced by the expression last assigned to it."""
    if isinstance(node, ast.Constant):
        return str(node.value).replace("{", "{{").replace("}", "}}")
    if isinstance(node, ast.JoinedStr):
        return "".join(template(piece, texts, depth) for piece in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return template(node.left, texts, depth) + template(node.right, texts, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _filled(template(node.left, texts, depth))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return re.sub(r"\{\{[^{}]*\}\}", "{…}", template(node.func.value, texts, depth))
    if isinstance(node, ast.Name) and depth < 3 and node.id in texts:
        return template(texts[node.id], texts, depth + 1)
    inner = node.value if isinstance(node, ast.FormattedValue) else node
    source = _source(inner)
    return "{…}" if "{" in source or "}" in source else "{" + _cut(source, 60) + "}"


def _filled(text: str) -> str:
    """Return a %-format text with each conversion replaced by `{…}`."""
    return PERCENT.sub(lambda match: "%" if match.group() == "%%" else "{…}", text)


def _children(node: ast.AST, field: str) -> list[ast.AST]:
    value = getattr(node, field, None)
    return [c for c in value if isinstance(c, ast.AST)] if isinstance(value, list) else []


def _source(node: ast.AST) -> str:
    return _cut(" ".join(ast.unparse(node).split()), CONDITION_LENGTH)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
