"""Prints every string that a user may see, for review: `python tools/messages.py [--docstrings] [PATH ..]`.

It prints messages of the code (any literal of two or more words that is neither a docstring nor a regex), help texts
and the texts of the knowledge; with `--docstrings` the public docstrings instead. One line each: file:line: text.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from checks.catalog.entries import entries  # noqa: E402

_NOT_PROSE = re.compile(r"[\\^$]|\(\?|\\[dwsb]|^[-\w./:{}]+$|^\W*$")
_REGEX_CALLS = {"compile", "search", "match", "fullmatch", "findall", "sub", "split"}


def code_strings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each literal that looks like prose."""
    tree = ast.parse(path.read_text("utf-8"))
    skipped = {id(node) for node in _docstrings(tree)} | {id(node) for node in _regexes(tree)}
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in skipped or id(node) in inside:
            continue
        text = _text(node)
        if text and " " in text.strip() and not _NOT_PROSE.search(text):
            yield node.lineno, " ".join(text.split())  # type: ignore[attr-defined]


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of the docstrings of a module and of its public classes and functions."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            name = getattr(node, "name", "")
            if not name.startswith("_") and (text := ast.get_docstring(node)):
                yield getattr(node, "lineno", 1), " ".join(text.split())


def knowledge_strings() -> Iterator[tuple[str, str]]:
    """Yield place and text of every message, title, reason and remedy of the knowledge entries."""
    for entry in entries():
        place = f"checks/knowledge/{entry.folder.parent.name}/{entry.id}"
        texts = [entry.title, entry.why, *(rule.message for rule in entry.before)]
        texts += [remedy.text for remedy in entry.remedies]
        yield from ((place, text) for text in texts if text)


def _text(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(
                part.value if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"  # type: ignore[attr-defined]
                for part in parts
            )
        case _:
            return ""


def _docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            yield from (
                item.value for item in body if isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)
            )


def _regexes(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _REGEX_CALLS:
            yield from node.args[:1]


def main(words: list[str]) -> None:
    """Print the strings below the given paths, by default of the whole product."""
    chosen = [Path(word).resolve() for word in words if not word.startswith("--")]
    paths = chosen or [ROOT / "launcher", ROOT / "checks"]
    files = sorted(file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py")))
    read = docstrings if "--docstrings" in words else code_strings
    for file in files:
        for line, text in read(file):
            print(f"{file.relative_to(ROOT)}:{line}: {text}")
    if not chosen and "--docstrings" not in words:
        for place, text in knowledge_strings():
            print(f"{place}: {' '.join(text.split())}")


if __name__ == "__main__":
    main(sys.argv[1:])
