"""A schema, two tools, and what is asked about them to see whether structure is obeyed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.serving.asking import Asker, Body
from tests.serving.witness import Witness, reply

SCHEMA: Body = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 18, "maximum": 90},
        "role": {"enum": ["admin", "guest"]},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 3},
        "home": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "age", "role", "tags", "home"],
    "additionalProperties": False,
}
ASKED = "Make a record for a guest called Anna, age 34, who lives in Oslo."
FORMAT = {"type": "json_schema", "json_schema": {"name": "record", "schema": SCHEMA}}
WEATHER: Body = {"type": "function", "function": {
    "name": "get_weather", "description": "Return the weather of a city",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}}, "required": ["city"]}}}  # fmt: skip
TIME: Body = {"type": "function", "function": {
    "name": "get_time", "description": "Return the time in a zone",
    "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]}}}  # fmt: skip
CITIES = "What is the weather in Paris and in Oslo, in celsius?"


def breaks(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether a value breaks a schema of the kinds used here."""
    if "enum" in schema:
        return value not in schema["enum"]
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
    }
    if not isinstance(value, kinds[schema["type"]]):
        return True
    if isinstance(value, dict):
        extra = schema.get("additionalProperties") is False and set(value) - set(schema["properties"])
        missing = set(schema.get("required", ())) - set(value)
        return bool(
            extra
            or missing
            or any(breaks(value[key], inner) for key, inner in schema["properties"].items() if key in value)
        )
    if isinstance(value, list):
        return not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 99) or any(
            breaks(item, schema["items"]) for item in value
        )
    return isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value)


def _bad(text: str) -> bool:
    try:
        return breaks(json.loads(text), SCHEMA)
    except ValueError:
        return True


def obeyed(count: int = 1, at_once: int = 1, **params: Any) -> Witness:
    """Return a witness that sees a reply which breaks the schema it was asked for."""
    return lambda ask: any(ask.many(count, lambda _: _bad(ask.say(ASKED, response_format=FORMAT, **params)), at_once))


def calls(check: Any, asked: str = CITIES, count: int = 1, **params: Any) -> Witness:
    """Return a witness that reads the calls in whole replies."""
    given = {"tools": [WEATHER, TIME], **params}
    return reply(lambda body: check(body["choices"][0]["message"].get("tool_calls") or []), asked, count, **given)


def streamed_calls(asked: str = CITIES, count: int = 1, **params: Any) -> Witness:
    """Return a witness that compares calls in a stream with what they should be."""

    def look(ask: Asker) -> bool:
        for _ in range(count):
            got = ask.hear(asked, tools=[WEATHER, TIME], **params).calls()
            if not all(_is_json(text) for _, text in got) or [
                (name, json.loads(text).get("city")) for name, text in got
            ] != [("get_weather", "Paris"), ("get_weather", "Oslo")]:
                return True
        return False

    return look


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def readable(found: list[Body]) -> bool:
    """Return whether the arguments of all calls can be decoded."""
    try:
        return bool(found) and all(json.loads(call["function"]["arguments"]) for call in found)
    except ValueError:
        return False
