"""The keys allowed in a profile's `expect`: one table of keys, types and meanings, and its parser.

`expect` defines the resulting records. The editor schema (`launcher.profile.editor_schema`) is built from the same
table. Probes read the record; the launcher reads the keys that steer a launch (suite, ready-within, baseline, soak,
deeper).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from math import inf
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from checks import KNOWLEDGE
from checks.after.probes.entry import SUITES
from checks.after.probes.expect import Expect
from checks.catalog.yaml_reader import did_you_mean

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class ExpectError(ValueError):
    """The profile's `expect` contains an unknown key or an invalid value."""


class Kind(StrEnum):
    """The type of a value, in the words of error messages."""

    TEXT = "a text"
    WORD = "an allowed word"
    FLAG = "true or false"
    COUNT = "a whole number, 1 or more"
    NUMBER = "a number, 0 or more"
    SHARE = "a share from 0 to 1"
    COUNTS = "a list of whole numbers, 1 or more"
    TEXTS = "a list of texts"
    DURATION = "a duration: 30s, 10m, 1h30m"
    QUESTIONS = "a list of {prompt, accept: [..]}, or false"
    PARTS = "a mapping"  # of the keys in `parts`
    NAMED = "a mapping of names"  # each with the keys in `parts`


class Key(Struct, frozen=True):
    """One key, spelled with hyphens; the parser accepts underscores as well."""

    kind: Kind
    text: str
    parts: Mapping[str, Key] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    folder: str = ""  # a knowledge folder; the names of its files are the allowed names

    @property
    def names(self) -> tuple[str, ...]:
        """The allowed names: the files in `folder`; empty without a folder."""
        return _names(self.folder) if self.folder else ()


@cache
def _names(folder: str) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (KNOWLEDGE / folder).glob("*.yaml")))


_AT_LEAST = Key(Kind.SHARE, "share that the lower bound of the score must reach")
_N = Key(Kind.COUNT, "most questions to ask")

KEYS: Mapping[str, Key] = {
    "suite": Key(Kind.WORD, "suite of probes to run (default smoke)", words=SUITES),
    "ready-within": Key(Kind.NUMBER, "seconds the server may take to become ready (default 3600)"),
    "baseline": Key(Kind.TEXT, "name of the baseline, or run, that every launch is compared with"),
    "soak": Key(Kind.DURATION, "how long to continue probing after the validation: 30s, 10m, 1h30m"),
    "deeper": Key(Kind.NAMED, "tasks for an external eval harness on this machine", {
        "with": Key(Kind.WORD, "the harness (default: the first installed one)", words=("sgl-eval", "lm-eval")),
        "n": _N, "at-least": _AT_LEAST,
    }),
    "also": Key(Kind.TEXTS, "ids of further probes to run that are not in the suite", folder="probes"),
    "skip": Key(Kind.TEXTS, "ids of probes to skip; a skipped probe does not count as passed", folder="probes"),
    "model": Key(Kind.TEXT, "name that /v1/models must list (default: the server's served_model_name)"),
    "chat": Key(Kind.FLAG, "false for a base model without a chat template: probes then use /generate"),
    "thinking": Key(Kind.FLAG, "true enables reasoning in the probes (default false)"),
    "known-answer": Key(Kind.QUESTIONS, "questions instead of the built-in ones; false: the model is too weak for any"),
    "timeout": Key(Kind.NUMBER, "seconds one request may take (default 30 for smoke and soak, else 120)"),
    "concurrency": Key(Kind.COUNT, "most requests in flight (default: the server's limit, at most 64)"),
    "prompt-nll": Key(Kind.NUMBER, "largest negative log-likelihood of plain English, nats per token (default 6)"),
    "common-words": Key(Kind.SHARE, "share of common English words in prose (default 0.15; 0 for other languages)"),
    "accuracy": Key(Kind.NAMED, "bundled accuracy sets and the scores expected on them", {
        "at-least": _AT_LEAST, "margin": Key(Kind.SHARE, "accepted loss against the baseline, a share (default 0.05)"),
        "n": _N, "max-tokens": Key(Kind.COUNT, "most tokens of an answer"),
    }, folder="accuracy"),
    "acceptance": Key(Kind.PARTS, "accept length of speculative decoding: tokens per verify step, with bonus token", {
        "at-least": Key(Kind.NUMBER, "smallest accepted mean"), "at-most": Key(Kind.NUMBER, "largest accepted mean"),
    }),
    "speed": Key(Kind.PARTS, "how the speed is measured, and its limits", {
        "decode-at-least": Key(Kind.NUMBER, "minimum tok/s of a single stream"),
        "ttft-at-most": Key(Kind.NUMBER, "maximum seconds to the first token"),
        "margin": Key(Kind.NUMBER, "accepted loss against the baseline, a share (default 0.05)"),
        "repeats": Key(Kind.COUNT, "number of single streams to measure (default 5)"),
        "tokens": Key(Kind.COUNT, "tokens of each measured stream"),
        "floor": Key(Kind.NUMBER, "minimum decode rate of any stream, tok/s (default 1)"),
        "concurrency": Key(Kind.COUNTS, "concurrent streams to measure (default 4, 16 and the server's limit)"),
    }),
    "fingerprint": Key(Kind.PARTS, "log-probabilities of a fixed prompt against the baseline's", {
        "kl-at-most": Key(Kind.NUMBER, "largest KL divergence, nats per token (default 0.03)"),
    }),
}  # fmt: skip
# Not written in profiles: the launcher passes the profile's `accept` to the probes under this key.
_INNER = {"accept-warnings": Key(Kind.NAMED, "warning id → {reason, until}", {
    "reason": Key(Kind.TEXT, ""), "until": Key(Kind.TEXT, ""),
})}  # fmt: skip


def parse_expect(expect: Mapping[str, Any]) -> Expect:
    """Parse the `expect` mapping of a profile. Raises ExpectError for an unknown key or an invalid value."""
    plain = _parts(expect, {**KEYS, **_INNER}, "expect")
    if "soak" in plain:
        plain["soak"] = duration(plain["soak"])
    if plain.get("known_answer") is False:
        del plain["known_answer"]
        return replace(msgspec.convert(plain, Expect, strict=False), known_answer=False)
    return msgspec.convert(plain, Expect, strict=False)


def duration(text: object) -> float:
    """Return the seconds of a duration such as `90`, `30s`, `10m` or `1h30m`. Raises ExpectError if it is invalid."""
    written = str(text).strip()
    parts = re.findall(r"([\d.]+)([smhd]?)", written)
    try:
        if parts and "".join(number + unit for number, unit in parts) == written:
            return sum(float(number) * _UNITS[unit] for number, unit in parts)
    except ValueError:
        pass
    raise ExpectError(f"invalid duration `{written}`: write 30s, 10m or 1h30m")


def _parts(values: Mapping[str, Any], keys: Mapping[str, Key], where: str) -> dict[str, Any]:
    parsed = {}
    for name, value in values.items():
        spelled = str(name).replace("_", "-")
        if spelled not in keys:
            raise ExpectError(f"unknown key `{name}` in `{where}`: {did_you_mean(spelled, keys)}")
        if value is None:
            continue  # null is the same as a missing key
        parsed[spelled.replace("-", "_")] = _value(value, keys[spelled], f"{where}.{spelled}")
    return parsed


def _value(value: Any, key: Key, where: str) -> Any:
    if key.names and isinstance(value, Mapping | list | tuple):
        for name in value:
            if name not in key.names:
                raise ExpectError(f"unknown name `{name}` in `{where}`: {did_you_mean(str(name), key.names)}")
    match key.kind, value:
        case Kind.PARTS, Mapping():
            return _parts(value, key.parts, where)
        case Kind.NAMED, Mapping():
            return {name: _named(part, key, f"{where}.{name}") for name, part in value.items()}
        case _ if fits(value, key):
            return value
    allowed = f"{key.kind} ({', '.join(key.words or key.parts)})" if key.words or key.parts else str(key.kind)
    hint = f"; {did_you_mean(str(value), key.words)}" if key.words else ""
    raise ExpectError(f"`{where}: {value}` is not {allowed}{hint}")


def _named(part: Any, key: Key, where: str) -> dict[str, Any]:
    return _value(part if part is not None else {}, Key(Kind.PARTS, key.text, key.parts), where)  # type: ignore[no-any-return]


def fits(value: Any, key: Key) -> bool:
    """Return whether a single value has the key's kind. Text that looks like a number is not a number."""
    match key.kind:
        case Kind.WORD:
            return value in key.words
        case Kind.COUNTS:
            return isinstance(value, list | tuple) and all(_number(item, 1, whole=True) for item in value)
        case Kind.TEXTS:
            return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
        case Kind.QUESTIONS:
            return value is False or (isinstance(value, list | tuple) and bool(value) and all(map(_question, value)))
        case _:
            return key.kind in _SINGLE and _SINGLE[key.kind](value)


def _number(value: Any, least: float = 0, most: float = inf, *, whole: bool = False) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and least <= value <= most and (not whole or value == int(value))


_SINGLE: Mapping[Kind, Callable[[Any], bool]] = {
    Kind.TEXT: lambda value: isinstance(value, str) and bool(value),
    Kind.FLAG: lambda value: isinstance(value, bool),
    Kind.COUNT: lambda value: _number(value, 1, whole=True),
    Kind.NUMBER: _number,
    Kind.SHARE: lambda value: _number(value, 0, 1),
    Kind.DURATION: lambda value: _number(value) or isinstance(value, str),  # read by `duration`
}


def _question(item: Any) -> bool:
    if not isinstance(item, Mapping) or set(item) != {"prompt", "accept"}:
        return False
    accepted = item["accept"]
    return isinstance(accepted, list | tuple) and bool(accepted)
