"""Build the JSON Schema of a profile, so that editors complete and check a profile as it is typed. Pure.

The parser of the same format is `launcher.profile.file`; tests hold the two to the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checks.after.probes.expectations import KEYS, Key, Kind
from checks.engine.flag_schema import FlagSchema
from launcher.profile.file import ACCEPT_KEYS, HARDWARE_KEYS, MODEL_KEYS

_SCALAR = {"type": ["string", "number", "boolean"]}

_COUNT = {"type": "integer", "minimum": 1}
_SINGLE: Mapping[Kind, Mapping[str, Any]] = {
    Kind.TEXT: {"type": "string", "minLength": 1},
    Kind.FLAG: {"type": "boolean"},
    Kind.COUNT: _COUNT,
    Kind.NUMBER: {"type": "number", "minimum": 0},
    Kind.SHARE: {"type": "number", "minimum": 0, "maximum": 1},
    Kind.COUNTS: {"type": "array", "items": _COUNT},
    Kind.TEXTS: {"type": "array", "items": {"type": "string"}},
    Kind.DURATION: {"type": ["string", "number"]},
}
_QUESTION = {
    "type": "object",
    "additionalProperties": False,
    "required": ["prompt", "accept"],
    "properties": {"prompt": {"type": "string"}, "accept": {"type": "array", "minItems": 1}},
}
_ENV: dict[str, Any] = {
    "value": {"type": ["string", "number", "boolean"]},
    "why": {"type": "string"},
    "engine": {"type": "string"},
    "secret": {"type": "boolean"},
}


def profile_schema(engine: FlagSchema) -> dict[str, Any]:
    """Return the schema of a profile (JSON Schema draft 2020-12).

    It lists the flags of `engine` and allows any other flag, because a profile may be written for another release.
    """
    flags = {flag.names[0]: _flag(flag.type or "", flag.choices, flag.help) for flag in engine.flags if not flag.hidden}
    env_value = {"anyOf": [_SCALAR, {"type": "null"}, _object(_ENV)]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"sglang-launcher profile (flags of SGLang {engine.version})",
        "type": "object",
        "additionalProperties": False,
        "$defs": {"value": _with_why({"anyOf": [_SCALAR, {"type": "null"}, {"type": "array", "items": _SCALAR}]})},
        "properties": {
            "why": _text("the purpose of this profile, in a sentence or two"),
            "extends": {"anyOf": [_text(), {"type": "array", "items": _text()}]},
            "abstract": {"type": "boolean", "description": "true: other profiles extend it; it cannot be launched"},
            "engine": _text("SGLang releases this profile supports, e.g. '>=0.5.10,<0.5.20'"),
            "model": _object({key: _with_why(_text()) for key in MODEL_KEYS}),
            "hardware": _object({key: _with_why(_SCALAR) for key in HARDWARE_KEYS}),
            "flags": {"type": "object", "properties": flags, "additionalProperties": True},
            "env": {"type": "object", "additionalProperties": env_value},
            "expect": {**_keys(KEYS), "description": "which probes the running server gets and what they must show"},
            "accept": {
                "type": "array",
                "items": {**_object({key: _text() for key in ACCEPT_KEYS}), "required": ["id", "reason"]},
            },
        },
    }


def _keys(keys: Mapping[str, Key]) -> dict[str, Any]:
    """Schema of these keys. Editors complete the hyphenated names; names with underscores are valid too, as in the
    parser."""
    hyphenated = {name: _expectation(key) for name, key in keys.items()}
    underscored = {f"^{name.replace('-', '_')}$": value for name, value in hyphenated.items() if "-" in name}
    return {**_object(hyphenated), **({"patternProperties": underscored} if underscored else {})}


def _expectation(key: Key) -> dict[str, Any]:
    match key.kind:
        case Kind.PARTS:
            value = _keys(key.parts)
        case Kind.NAMED:
            value = {"type": "object", "additionalProperties": {"anyOf": [_keys(key.parts), {"type": "null"}]}}
            if key.names:
                value["propertyNames"] = {"enum": list(key.names)}
        case Kind.WORD:
            value = {"enum": list(key.words)}
        case Kind.QUESTIONS:
            value = {"anyOf": [{"const": False}, {"type": "array", "minItems": 1, "items": _QUESTION}]}
        case Kind.TEXTS if key.names:
            value = {"type": "array", "items": {"enum": list(key.names)}}
        case _:
            value = dict(_SINGLE[key.kind])
    return {"description": key.text, **value}


def _flag(kind: str, choices: tuple[Any, ...] | None, description: str) -> dict[str, Any]:
    annotation = {"description": description or kind}
    if not choices:
        return {"$ref": "#/$defs/value", **annotation}
    value: dict[str, Any] = {"enum": [*choices, None, False]}
    return {**_with_why({"anyOf": [value, {"type": "array", "items": value}]}), **annotation}


def _with_why(value: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [value, _object({"value": value, "why": _text(), "engine": _text()})]}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _text(description: str = "") -> dict[str, Any]:
    return {"type": "string", **({"description": description} if description else {})}
