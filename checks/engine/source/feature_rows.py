"""Map the engine's source to the settings that lead there: functions that read options, files that values select.

Four kinds of rows, with tab-separated fields, which `checks.engine.feature_map` reads:

- `P file`: a file of the engine.
- `F file function line end settings`: a function that reads options, by the name of the attribute, or environment
  variables, with `$` before the name. A name of several words counts on any object (`server_args.page_size`,
  `get_spec().speculative_algorithm`, `self.page_size`), because the engine copies options to other objects; a name of
  one word (`port`) only on an object of options.
- `V value file`: a file that is imported only for one value of an option: by a registry
  (`@register_attention_backend("flashmla")`), a comparison (`if backend == "outlines":`, `if spec.is_eagle():`) or a
  table (`{"awq": AWQConfig}`).
- `S attribute file`: a file that is imported only under a condition on an option (`if server_args.enable_lora:`).

It runs on a host under Python 3.9 with only the standard library.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from checks.engine.source.tree import SourceTree
from checks.engine.source.values import dotted

ROOTS = ("srt/", "cli/", "launch_server.py")
ARGUMENTS_FILE = "srt/server_args.py"
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]{2,}")
_PREDICATE = re.compile(r"is_([a-z][a-z0-9_]+)$")


def read_features(tree: SourceTree, options: Iterable[str], choices: Iterable[str]) -> Iterator[str]:
    """Return the rows of all files. `options`: attribute names of options; `choices`: values that options accept."""
    known, values = frozenset(options), frozenset(map(plain, choices))
    for path in tree.paths():
        module = tree.parse(path) if path.startswith(ROOTS) else None
        if module is None:
            continue
        yield f"P\t{path}"
        yield from _Reader(tree, path, known, values).rows(module)
        tree.forget(path)


def plain(value: str) -> str:
    """Return a value in the form that names in a profile and in Python share: `flash-mla` → `flashmla`."""
    return re.sub(r"[^a-z0-9]", "", str(value).lower())


class _Reader:
    """The rows of one file."""

    def __init__(self, tree: SourceTree, path: str, options: frozenset[str], values: frozenset[str]) -> None:
        self._tree, self._path, self._options, self._values = tree, path, options, values

    def rows(self, module: ast.Module) -> list[str]:
        imported = {name: file for node in module.body for name, file in self._imports(node)}
        rows = [*self._functions(module, ()), *self._tables(module, imported)]
        for node in ast.walk(module):
            if isinstance(node, ast.If):
                rows.extend(self._branch(node))
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                rows.extend(self._registered(node))
        return sorted(set(rows))

    def _functions(self, node: ast.AST, names: tuple[str, ...]) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                settings = sorted(set(self._settings(child)))
                if settings:
                    end = child.end_lineno or child.lineno
                    fields = (self._path, ".".join((*names, child.name)), str(child.lineno), str(end))
                    yield "\t".join(("F", *fields, ",".join(settings)))
            inner = (*names, child.name) if isinstance(child, (ast.ClassDef, ast.FunctionDef)) else names
            yield from self._functions(child, inner)

    def _settings(self, node: ast.AST) -> Iterator[str]:
        """Return the options and variables that a piece of code reads."""
        for item in ast.walk(node):
            if isinstance(item, ast.Attribute):
                owner = dotted(item.value.func if isinstance(item.value, ast.Call) else item.value)
                if item.attr in self._options and ("_" in item.attr or self._holds_options(owner)):
                    yield item.attr
                elif owner.split(".")[-1] == "envs" and _VARIABLE.fullmatch(item.attr):
                    yield f"${item.attr}"
            elif isinstance(item, ast.Call) and "env" in dotted(item.func).lower():
                yield from (f"${text}" for text in map(_text, item.args[:1]) if _VARIABLE.fullmatch(text))
            elif isinstance(item, ast.Subscript) and dotted(item.value).endswith("environ"):
                yield from (f"${text}" for text in (_text(item.slice),) if _VARIABLE.fullmatch(text))

    def _holds_options(self, owner: str) -> bool:
        last = owner.rsplit(".", maxsplit=1)[-1]
        return last.endswith("server_args") or last == "args" or (owner == "self" and self._path == ARGUMENTS_FILE)

    def _branch(self, node: ast.If) -> Iterator[str]:
        """Return the files that the body of a condition imports, for the values and options in its test."""
        files = [file for item in node.body for inner in ast.walk(item) for _, file in self._imports(inner)]
        if not files:
            return
        for value in self._compared(node.test):
            yield from (f"V\t{value}\t{file}" for file in files)
        if not isinstance(node.test, ast.UnaryOp):
            options = {item for item in self._settings(node.test) if not item.startswith("$")}
            yield from (f"S\t{option}\t{file}" for option in options for file in files)

    def _compared(self, test: ast.expr) -> Iterator[str]:
        for item in ast.walk(test):
            texts: list[str] = []
            if isinstance(item, ast.Compare) and isinstance(item.ops[0], (ast.Eq, ast.In)):
                right = item.comparators[0]
                elements = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right]
                texts = [_text(element) or dotted(element).split(".")[-1] for element in elements]
            elif isinstance(item, ast.Call):
                predicate = _PREDICATE.search(dotted(item.func))
                texts = [predicate[1]] if predicate else []
            yield from (plain(text) for text in texts if plain(text) in self._values)

    def _registered(self, node: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and decorator.args and "regist" in dotted(decorator.func).lower():
                value = plain(_text(decorator.args[0]))
                files = [file for inner in ast.walk(node) for _, file in self._imports(inner)] or [self._path]
                yield from (f"V\t{value}\t{file}" for file in files if value in self._values)

    def _tables(self, module: ast.Module, imported: dict[str, str]) -> Iterator[str]:
        for item in ast.walk(module):
            if isinstance(item, ast.Dict):
                for key, value in zip(item.keys, item.values):  # noqa: B905 - Python 3.9 has no `strict`
                    name = plain(_text(key)) if key is not None else ""
                    file = imported.get(dotted(value)) if isinstance(value, ast.Name) else None
                    if file and name in self._values:
                        yield f"V\t{name}\t{file}"

    def _imports(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        """Return name → file of what a statement imports from the engine."""
        if not isinstance(node, ast.ImportFrom) or node.level or not (node.module or "").startswith("sglang."):
            return
        base = "/".join((node.module or "").split(".")[1:])
        for alias in node.names:
            for path in (f"{base}/{alias.name}.py", f"{base}.py", f"{base}/__init__.py"):
                if self._tree.has(path):
                    yield alias.asname or alias.name, path
                    break


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
