"""The only YAML door: YAML 1.2 scalars, no duplicate keys, and file:line:column in every complaint.

`read(path)` gives a Node tree. A Node hands out typed values and collects nothing: the first fault raises YamlError
with its position and, for names, a "did you mean". Writing YAML is `dump`.
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

# YAML 1.2 core schema. PyYAML's 1.1 would turn NO into False, 12:30:45 into 45045 and 0777 into 511.
_SCALARS: tuple[tuple[re.Pattern[str], Any], ...] = (
    (re.compile(r"(?:~|null|Null|NULL|)\Z"), lambda _: None),
    (re.compile(r"(?:true|True|TRUE)\Z"), lambda _: True),
    (re.compile(r"(?:false|False|FALSE)\Z"), lambda _: False),
    (re.compile(r"[-+]?[0-9]+\Z"), int),
    (re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z"), float),
)


class YamlError(ValueError):
    """What is wrong, where (file:line:column), and what to do about it."""

    def __init__(self, message: str, where: str, hint: str = "") -> None:
        super().__init__(f"{where}: {message}" + (f"\n  hint: {hint}" if hint else ""))
        self.message = message
        self.where = where
        self.hint = hint


class Node(Struct, frozen=True):
    """One value of a YAML document together with the place it came from."""

    value: Any  # None, bool, int, float, str, list[Node] or dict[str, Node]
    path: str
    line: int
    column: int
    keys: dict[str, tuple[int, int]]  # of a mapping: key → line, column of the key itself
    raw: str = ""  # a scalar as it was typed

    @property
    def where(self) -> str:
        """file:line:column"""
        return f"{self.path}:{self.line}:{self.column}"

    def fail(self, message: str, hint: str = "") -> YamlError:
        """An error at this node, to be raised by the caller."""
        return YamlError(message, self.where, hint)

    def key_where(self, key: str) -> str:
        """file:line:column of a key of this mapping."""
        line, column = self.keys.get(key, (self.line, self.column))
        return f"{self.path}:{line}:{column}"

    def mapping(self, allowed: Iterable[str] | None = None, what: str = "key") -> dict[str, Node]:
        """This node as a mapping; with `allowed`, any other key is an error."""
        if not isinstance(self.value, dict):
            raise self.fail(f"expected a mapping, found {self.kind}")
        if allowed is not None:
            names = list(allowed)
            for key in self.value:
                if key not in names:
                    raise YamlError(f"unknown {what} `{key}`", self.key_where(key), did_you_mean(key, names))
        return self.value

    def sequence(self) -> list[Node]:
        """This node as a list."""
        if not isinstance(self.value, list):
            raise self.fail(f"expected a list, found {self.kind}")
        return self.value

    def text(self) -> str:
        """This node as text; a number is given as it was typed."""
        if isinstance(self.value, str):
            return self.value
        if isinstance(self.value, int | float) and not isinstance(self.value, bool):
            return self.raw
        raise self.fail(f"expected text, found {self.kind}")

    def flag(self) -> bool:
        """This node as true or false."""
        if not isinstance(self.value, bool):
            raise self.fail(f"expected true or false, found {self.kind}", f"you wrote `{self.raw}`")
        return self.value

    def number(self) -> float:
        """This node as a number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.fail(f"expected a number, found {self.kind}")
        return float(self.value)

    def get(self, key: str) -> Node | None:
        """Child of a mapping; None when it is missing or null."""
        child = self.mapping().get(key)
        return None if child is None or child.value is None else child

    def need(self, key: str) -> Node:
        """Child of a mapping that must be there."""
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
        """The bare value without positions."""
        match self.value:
            case dict():
                return {key: child.plain() for key, child in self.value.items()}
            case list():
                return [child.plain() for child in self.value]
            case _:
                return self.value

    @property
    def kind(self) -> str:
        """Name of the type in YAML's words."""
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
    """The document in a file. Raises YamlError, also when the file is missing or not text."""
    name = shown or str(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise YamlError(error.strerror or str(error), name) from error
    return parse(data, name)


def parse(data: bytes | str, name: str) -> Node:
    """The document in a text; `name` stands for the file in messages."""
    if len(data) > MAX_BYTES:
        raise YamlError(f"larger than {MAX_BYTES >> 20} MiB: this is not a profile", name)
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    except UnicodeDecodeError as error:
        raise YamlError(f"not UTF-8 text (byte {error.start})", name) from error
    import yaml  # 20 ms: commands that read no YAML file go without

    try:
        tree = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise YamlError(error.problem or str(error), where) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlError(f"unreadable: {error}", name) from error
    if tree is None:
        return Node({}, name, 1, 1, {})
    return _convert(tree, name, frozenset())


def dump(data: object) -> str:
    """YAML text in the order given, for files that people read.

    `parse` reads back the same data, except that Unicode's own line breaks (U+0085, U+2028) become blanks.
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes also what is a number in YAML 1.2 only, such as the text `1e3`."""

    def write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        plain = not any(pattern.match(text) for pattern, _ in _SCALARS)
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else "'")

    Dumper.add_representer(str, write_text)
    return yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=False)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean ...?`, or the list of what is known when nothing is near and the list is short."""
    import difflib

    names = list(known)
    near = difflib.get_close_matches(word, names, n=2, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(f"`{name}`" for name in near) + "?"
    return f"known: {', '.join(sorted(names))}" if len(names) <= 20 else ""


def _convert(node: Any, name: str, parents: frozenset[int]) -> Node:
    mark = node.start_mark
    line, column = mark.line + 1, mark.column + 1
    if id(node) in parents:
        raise YamlError("an alias that contains itself", f"{name}:{line}:{column}")
    inside = parents | {id(node)}
    if len(inside) > 40:
        raise YamlError("nested too deeply", f"{name}:{line}:{column}")
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
    seen: dict[str, int] = {}
    for key, value in node.value:
        place = f"{name}:{key.start_mark.line + 1}:{key.start_mark.column + 1}"
        if key.id != "scalar":
            raise YamlError("a key must be plain text", place)
        if key.value == "<<":
            raise YamlError("`<<` merges are not read here", place, "use `extends`")
        if key.value in seen:
            raise YamlError(f"`{key.value}` is given twice (first on line {seen[key.value]})", place)
        seen[key.value] = key.start_mark.line + 1
        yield key, value


def _scalar(node: Any) -> Any:
    if node.style in ("'", '"', "|", ">"):
        return node.value
    for pattern, convert in _SCALARS:
        if pattern.match(node.value):
            try:
                return convert(node.value)
            except ValueError:
                return node.value  # more than 4300 digits, the most that `int` reads
    return node.value
