"""Read and write YAML: YAML 1.2 scalars, no duplicate keys, and file:line:column in every error.

No other module imports a YAML library. `read(path)` returns a tree of Nodes, which return typed values. The first fault
raises YamlError with its position and, for names, a "did you mean". `dump` writes YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from checks.vocabulary import EngineRange

MAX_BYTES = 4 << 20

# YAML 1.2 core schema. PyYAML reads YAML 1.1 and turns NO into False, 12:30:45 into 45045 and 0777 into 511.
_SCALARS: tuple[tuple[re.Pattern[str], Any], ...] = (
    (re.compile(r"(?:~|null|Null|NULL|)\Z"), lambda _: None),
    (re.compile(r"(?:true|True|TRUE)\Z"), lambda _: True),
    (re.compile(r"(?:false|False|FALSE)\Z"), lambda _: False),
    (re.compile(r"[-+]?[0-9]+\Z"), int),
    (re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z"), float),
)


class YamlError(ValueError):
    """A fault in a YAML file: a message, its position (file:line:column), and a hint on the fix."""

    def __init__(self, message: str, where: str, hint: str = "") -> None:
        super().__init__(f"{where}: {message}" + (f"\n  hint: {hint}" if hint else ""))
        self.message = message
        self.where = where
        self.hint = hint


class Node(Struct, frozen=True):
    """One value of a YAML document with its position."""

    value: Any  # None, bool, int, float, str, list[Node] or dict[str, Node]
    path: str
    line: int
    column: int
    keys: dict[str, tuple[int, int]]  # of a mapping: key → line, column of the key itself
    raw: str = ""  # the text of a scalar, as typed

    @property
    def where(self) -> str:
        """file:line:column"""
        return f"{self.path}:{self.line}:{self.column}"

    def fail(self, message: str, hint: str = "") -> YamlError:
        """Return an error at this node for the caller to raise."""
        return YamlError(message, self.where, hint)

    def key_where(self, key: str) -> str:
        """Return file:line:column of a key of this mapping; of the mapping itself for an unknown key."""
        line, column = self.keys.get(key, (self.line, self.column))
        return f"{self.path}:{line}:{column}"

    def mapping(self, allowed: Iterable[str] | None = None, what: str = "key") -> dict[str, Node]:
        """Return this node as a mapping. Raises YamlError for another type and, with `allowed`, for any other key."""
        if not isinstance(self.value, dict):
            raise self.fail(f"expected a mapping, found {self.kind}")
        if allowed is not None:
            names = list(allowed)
            for key in self.value:
                if key not in names:
                    raise YamlError(f"unknown {what} `{key}`", self.key_where(key), did_you_mean(key, names))
        return self.value

    def sequence(self) -> list[Node]:
        """Return this node as a list. Raises YamlError for another type."""
        if not isinstance(self.value, list):
            raise self.fail(f"expected a list, found {self.kind}")
        return self.value

    def text(self) -> str:
        """Return this node as text; a number as it was typed. Raises YamlError for another type."""
        if isinstance(self.value, str):
            return self.value
        if isinstance(self.value, int | float) and not isinstance(self.value, bool):
            return self.raw
        raise self.fail(f"expected text, found {self.kind}")

    def flag(self) -> bool:
        """Return this node as true or false. Raises YamlError for another type."""
        if not isinstance(self.value, bool):
            raise self.fail(f"expected true or false, found {self.kind}", f"you wrote `{self.raw}`")
        return self.value

    def number(self) -> float:
        """Return this node as a number. Raises YamlError for another type."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.fail(f"expected a number, found {self.kind}")
        return float(self.value)

    def get(self, key: str) -> Node | None:
        """Return a child of this mapping; None if it is missing or null."""
        child = self.mapping().get(key)
        return None if child is None or child.value is None else child

    def need(self, key: str) -> Node:
        """Return a child of this mapping. Raises YamlError if it is missing or null."""
        child = self.get(key)
        if child is None:
            raise self.fail(f"`{key}` is missing")
        return child

    def text_of(self, key: str) -> str:
        """Return the text of a child without surrounding blanks; empty if the child is missing or null."""
        child = self.get(key)
        return child.text().strip() if child is not None else ""

    def items(self, key: str) -> list[Node]:
        """Return the items of a child that must be a list; empty if the child is missing or null."""
        child = self.get(key)
        return child.sequence() if child is not None else []

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the items of a child that must be a list of texts; empty if the child is missing or null."""
        return tuple(item.text() for item in self.items(key))

    def children(self, key: str) -> dict[str, Node]:
        """Return the children of a child that must be a mapping; empty if the child is missing or null."""
        child = self.get(key)
        return child.mapping() if child is not None else {}

    def choice(self, known: Iterable[str]) -> str:
        """Return this node as one of the known words."""
        word, words = self.text(), tuple(known)
        if word not in words:
            raise self.fail(f"`{word}` is not one of {', '.join(words)}")
        return word

    def engine_range(self, key: str) -> EngineRange:
        """Return a child as a range of engine releases; every release if the child is missing or null."""
        child = self.get(key)
        if child is None:
            return EngineRange()
        text = child.text().strip()
        try:
            SpecifierSet(text)
        except InvalidSpecifier as error:
            raise child.fail(f"`{text}` is not a version range", "write e.g. '>=0.5.10,<0.5.20'") from error
        return EngineRange(text)

    def plain(self) -> Any:
        """Return the plain Python value without positions."""
        match self.value:
            case dict():
                return {key: child.plain() for key, child in self.value.items()}
            case list():
                return [child.plain() for child in self.value]
            case _:
                return self.value

    @property
    def kind(self) -> str:
        """The name of the type in messages."""
        match self.value:
            case None:
                return "nothing"
            case bool():
                return "true/false"
            case int() | float():
                return "a number"
            case str():
                return "text"
            case list():
                return "a list"
            case _:
                return "a mapping"


def read(path: Path, shown: str = "") -> Node:
    """Return the document in a file. Raises YamlError, also if the file is missing or is not text."""
    name = shown or str(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise YamlError(error.strerror or str(error), name) from error
    return parse(data, name)


def parse(data: bytes | str, name: str) -> Node:
    """Return the document in a text. Messages call the file `name`. Raises YamlError."""
    if len(data) > MAX_BYTES:
        raise YamlError(f"the file is larger than {MAX_BYTES >> 20} MiB, so it is not a profile", name)
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    except UnicodeDecodeError as error:
        raise YamlError(f"not UTF-8 text (byte {error.start})", name) from error
    import yaml  # takes 20 ms, which commands without YAML files save

    try:
        tree = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise YamlError(error.problem or str(error), where) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlError(f"cannot read this as YAML: {error}", name) from error
    if tree is None:
        return Node({}, name, 1, 1, {})
    return _convert(tree, name, frozenset())


def dump(data: object) -> str:
    """Return data as YAML text with keys in their order, for files that people read.

    `parse` returns the same data, except that the Unicode line breaks U+0085 and U+2028 become spaces.
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        """A dumper that also quotes text which is a number in YAML 1.2 only, such as `1e3`."""

    def write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        plain = not any(pattern.match(text) for pattern, _ in _SCALARS)
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else "'")

    Dumper.add_representer(str, write_text)
    return yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=False)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `did you mean ...?`; without a similar name, the list of known names (at most 20), or empty text."""
    import difflib

    names = list(known)
    similar = difflib.get_close_matches(word, names, n=2, cutoff=0.6)
    if similar:
        return "did you mean " + " or ".join(f"`{name}`" for name in similar) + "?"
    return f"known: {', '.join(sorted(names))}" if len(names) <= 20 else ""


def _convert(node: Any, name: str, parents: frozenset[int]) -> Node:
    mark = node.start_mark
    line, column = mark.line + 1, mark.column + 1
    if id(node) in parents:
        raise YamlError("this alias contains itself", f"{name}:{line}:{column}")
    inside = parents | {id(node)}
    if len(inside) > 40:
        raise YamlError("nested more than 40 levels deep", f"{name}:{line}:{column}")
    match node.id:
        case "mapping":
            children, keys = {}, {}
            for key, value in _pairs(node, name):
                children[key.value] = _convert(value, name, inside)
                keys[key.value] = (key.start_mark.line + 1, key.start_mark.column + 1)
            return Node(children, name, line, column, keys)
        case "sequence":
            return Node([_convert(item, name, inside) for item in node.value], name, line, column, {})
        case _:
            return Node(_scalar(node), name, line, column, {}, raw=node.value)


def _pairs(node: Any, name: str) -> Iterator[tuple[Any, Any]]:
    first_lines: dict[str, int] = {}
    for key, value in node.value:
        place = f"{name}:{key.start_mark.line + 1}:{key.start_mark.column + 1}"
        if key.id != "scalar":
            raise YamlError("a key must be plain text", place)
        if key.value == "<<":
            raise YamlError("merge keys (`<<`) are not supported", place, "use `extends`")
        if key.value in first_lines:
            raise YamlError(f"duplicate key `{key.value}` (first on line {first_lines[key.value]})", place)
        first_lines[key.value] = key.start_mark.line + 1
        yield key, value


def _scalar(node: Any) -> Any:
    if node.style in ("'", '"', "|", ">"):
        return node.value
    for pattern, convert in _SCALARS:
        if pattern.match(node.value):
            try:
                return convert(node.value)
            except ValueError:
                return node.value  # more than 4300 digits, the limit of `int`
    return node.value
