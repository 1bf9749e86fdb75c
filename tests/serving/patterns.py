"""Texts that match a regular expression or a JSON schema: what constrained decoding lets through."""

from __future__ import annotations

import json
import re
import string
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from tests.serving.prose import crc

codes: ModuleType = sys.modules["re._constants"]
parser: ModuleType = sys.modules["re._parser"]
"""How the standard library takes an expression apart; it has no public name."""
Schema = Mapping[str, Any]
_GRAMMAR_PART = re.compile(r'"(?:\\.|[^"])*"|\'[^\']*\'|\[[^\]]*\]|[\w-]+')
_FILL = ("alpha", "river", "stone", "garden", "morning", "lantern", "harbour", "window")


def matching(pattern: str, seed: int = 0) -> str:
    """Return a text that a regular expression matches as a whole."""
    return _sequence(parser.parse(pattern), [seed])


def _pick(state: list[int], count: int) -> int:
    state[0] = crc(state[0], "next")
    return state[0] % max(count, 1)


def _sequence(items: Iterable[Any], state: list[int]) -> str:
    return "".join(_item(code, value, state) for code, value in items)


def _item(code: Any, value: Any, state: list[int]) -> str:
    """Return a text for one node of the parsed expression."""
    if code is codes.LITERAL:
        return chr(value)
    if code is codes.ANY:
        return string.ascii_lowercase[_pick(state, 26)]
    if code is codes.IN:
        allowed = _allowed(value)
        return allowed[_pick(state, len(allowed))] if allowed else ""
    if code is codes.BRANCH:
        return _sequence(value[1][_pick(state, len(value[1]))], state)
    if code is codes.SUBPATTERN:
        return _sequence(value[3], state)
    if code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
        low, high, inner = value
        least = max(low, 1) if low == 0 and high == codes.MAXREPEAT else low
        times = least + _pick(state, min(int(high), least + 4) - least + 1)
        return "".join(_sequence(inner, state) for _ in range(times))
    if code is codes.CATEGORY:
        return _allowed([(code, value)])[0]
    others = (letter for letter in string.ascii_lowercase if ord(letter) != value)
    return next(others) if code is codes.NOT_LITERAL else ""


def _allowed(items: Sequence[tuple[Any, Any]]) -> str:
    """Return the printable characters of a character class."""
    negated = items[0][0] is codes.NEGATE
    found = ""
    for code, value in items:
        if code is codes.LITERAL:
            found += chr(value)
        elif code is codes.RANGE:
            found += "".join(map(chr, range(value[0], min(value[1], value[0] + 200) + 1)))
        elif code is codes.CATEGORY:
            found += {
                codes.CATEGORY_DIGIT: string.digits,
                codes.CATEGORY_WORD: string.ascii_lowercase,
                codes.CATEGORY_SPACE: " ",
            }.get(value, string.ascii_lowercase)
    if negated:
        return "".join(letter for letter in string.ascii_lowercase + string.digits if letter not in found)
    return found


def from_ebnf(grammar: str, seed: int = 0) -> str:
    """Return a text of a simple grammar: literals, classes, alternatives, repeats and references."""
    rules = {
        name: body.strip()
        for name, body in re.findall(r"(?m)^\s*([\w-]+)\s*::=\s*(.*(?:\n(?!\s*[\w-]+\s*::=).*)*)", grammar)
    }

    def expression(body: str, depth: int = 0) -> str:
        def part(match: re.Match[str]) -> str:
            text = match[0]
            if text[0] in "\"'":
                literal = json.loads(text) if text[0] == '"' else text[1:-1]
                return "(?:" + re.escape(literal).replace("\\ ", "\\x20").replace("\\\n", "\\n") + ")"
            if text[0] == "[":
                return text
            return f"(?:{expression(rules.get(text, ''), depth + 1)})" if depth < 8 else ""

        return re.sub(r"\s+", "", _GRAMMAR_PART.sub(part, body))

    return matching(expression(rules.get("root", "")), seed)


class Writer:
    """Writes an instance of a JSON schema, with values taken from a text where it has fitting ones."""

    def __init__(self, root: Schema, text: str = "", seed: int = 0) -> None:
        self.root, self.text, self.state = root, text, [seed]
        self.numbers = [float(item) if "." in item else int(item) for item in re.findall(r"-?\b\d+(?:\.\d+)?\b", text)]
        self.names: list[str] = re.findall(r"(?<![.!?] )(?<!^)(?<!\n)\b[A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+)?", text)

    def value(self, schema: Schema | bool, name: str = "") -> Any:
        """Return a value that the schema allows."""
        if isinstance(schema, bool):
            return "x"
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._named(schema["enum"])
        kinds = schema.get("type", "object" if "properties" in schema else "string")
        kind = kinds[0] if isinstance(kinds, list) else kinds
        make = {
            "object": self._object, "array": self._array, "string": self._string,
            "integer": self._number, "number": self._number,
        }.get(kind)  # fmt: skip
        if make is not None:
            return make(schema, name)
        return (
            None if kind == "null" else not re.search(rf"\b(?:not|no|isn't|false)\b[^.]*{re.escape(name)}", self.text)
        )

    def _resolved(self, schema: Schema) -> Schema:
        """Follow references and take the first of alternatives."""
        while "$ref" in schema:
            found: Any = self.root
            for step in schema["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            schema = found
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                rest = {key: value for key, value in schema.items() if key != choice}
                return self._resolved({**rest, **self._resolved(schema[choice][0])})
        if "allOf" in schema:
            merged: dict[str, Any] = {key: value for key, value in schema.items() if key != "allOf"}
            for part in schema["allOf"]:
                inner = self._resolved(part)
                merged |= {**inner, "properties": {**merged.get("properties", {}), **inner.get("properties", {})}}
            return merged
        return schema

    def _named(self, options: Sequence[Any]) -> Any:
        """Return the option that the text names last, else one by chance."""
        found = [(self.text.lower().rfind(str(option).lower()), option) for option in options]
        best = max(found, key=lambda item: item[0])
        return best[1] if best[0] >= 0 else options[_pick(self.state, len(options))]

    def _object(self, schema: Schema, _name: str) -> dict[str, Any]:
        properties: Mapping[str, Any] = schema.get("properties", {})
        written = {key: self.value(inner, key) for key, inner in properties.items()}
        return {**written, **{key: "x" for key in schema.get("required", ()) if key not in properties}}

    def _array(self, schema: Schema, name: str) -> list[Any]:
        least, most = schema.get("minItems", 0), schema.get("maxItems", 10**6)
        count = min(max(least, 2), most)
        if "prefixItems" in schema:
            return [self.value(inner, name) for inner in schema["prefixItems"]]
        items: list[Any] = []
        for number in range(count * 4):
            item = self.value(schema.get("items", True), name)
            if schema.get("uniqueItems") and item in items:
                item = self._other(schema.get("items", {}), items, number)
            if not (schema.get("uniqueItems") and item in items):
                items.append(item)
            if len(items) == count:
                break
        return items

    def _other(self, schema: Schema, taken: Sequence[Any], number: int) -> Any:
        if "enum" in schema:
            return next((option for option in schema["enum"] if option not in taken), schema["enum"][0])
        kind = schema.get("type")
        return schema.get("minimum", 0) + number if kind in {"integer", "number"} else f"{_FILL[number % 8]}{number}"

    def _string(self, schema: Schema, name: str) -> str:
        if "pattern" in schema:
            return matching(re.sub(r"^\^|\$$", "", schema["pattern"]), self.state[0])
        if (known := _FORMATS.get(schema.get("format", ""))) is not None:
            return known
        if (said := self.said(name)) is not None:
            text = said
        elif self.names and re.search(r"name|city|location|country|place|person|title|who|where|capital", name.lower()):
            text = self.names[_pick(self.state, 1)] if len(self.names) == 1 else self.names.pop(0)
        else:
            text = _FILL[_pick(self.state, len(_FILL))]
        least = schema.get("minLength", 0)
        return (
            (text + " " + " ".join(_FILL) * least)[:least]
            if len(text) < least
            else text[: schema.get("maxLength", 10**6)]
        )

    def said(self, name: str) -> str | None:
        """Return what the text says about a field by its name."""
        words = re.escape(name.replace("_", " "))
        match = re.search(
            rf"(?i)\b{words}\b\s*(?:is|was|=|:|of)\s*[\"'“]?([\w\- ]*?\w)(?=[\"'”.,;!?\n]|$| and )", self.text
        )
        return match[1] if name and match else None

    def _number(self, schema: Schema, name: str) -> int | float:
        low = schema.get("minimum", schema.get("exclusiveMinimum", -(10**9)))
        high = schema.get("maximum", schema.get("exclusiveMaximum", 10**9))
        low += "exclusiveMinimum" in schema
        high -= "exclusiveMaximum" in schema
        whole = schema.get("type") != "number"
        near = (
            re.search(rf"(?i)\b{re.escape(name.replace('_', ' '))}\b\D{{0,12}}(-?\d+(?:\.\d+)?)", self.text)
            if name
            else None
        )
        wanted = [float(near[1])] if near else [float(number) for number in self.numbers]
        for number in wanted:
            if low <= number <= high and not (whole and number % 1) and not number % schema.get("multipleOf", 1):
                if not near:
                    self.numbers.remove(int(number) if not number % 1 else number)
                return int(number) if whole or not number % 1 else number
        step = schema.get("multipleOf", 1)
        start = low if low > -(10**9) else min(high, 1)
        value = -(-start // step) * step
        return int(value) if whole or not value % 1 else value


_FORMATS = {
    "date": "2024-05-17", "date-time": "2024-05-17T09:30:00Z", "time": "09:30:00Z", "email": "anna@example.com",
    "uri": "https://example.com/a", "uuid": "123e4567-e89b-42d3-a456-426614174000", "ipv4": "192.0.2.7",
    "hostname": "example.com",
}  # fmt: skip


def instance(schema: Schema, text: str = "", seed: int = 0) -> Any:
    """Return a value that a JSON schema allows, filled sensibly from a text."""
    return Writer(schema, text, seed).value(schema)
