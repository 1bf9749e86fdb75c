"""What `expect` of a profile may hold: one table of keys, types and meanings, and its parser (the record is `expect`).

The editor schema (`launcher.profile.editor_schema`) is made from the same table. Probes read the record; the launcher
reads what concerns the course of a launch (suite, ready-within, baseline, soak, deeper).
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
    """The profile's `expect` holds something that is not understood."""


class Kind(StrEnum):
    """What a value is."""

    TEXT = "a text"
    WORD = "one of the words"
    FLAG = "true or false"
    COUNT = "a whole number from 1"
    NUMBER = "a number, 0 or more"
    SHARE = "a share from 0 to 1"
    COUNTS = "a list of whole numbers from 1"
    TEXTS = "a list of texts"
    DURATION = "a duration: 30s, 10m, 1h30m"
    QUESTIONS = "a list of {prompt, accept: [..]}, or false"
    PARTS = "a mapping"  # of the keys in `parts`
    NAMED = "a mapping of names"  # each with the keys in `parts`


class Key(Struct, frozen=True):
    """One key, spelled with hyphens; underscores are taken as well."""

    kind: Kind
    text: str
    parts: Mapping[str, Key] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    folder: str = ""  # of the knowledge; the names are those of its files

    @property
    def names(self) -> tuple[str, ...]:
        """The names that are known, where there is a folder of them."""
        return _names(self.folder) if self.folder else ()


@cache
def _names(folder: str) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (KNOWLEDGE / folder).glob("*.yaml")))


_AT_LEAST = Key(Kind.SHARE, "score that its interval must reach")
_N = Key(Kind.COUNT, "most questions")

KEYS: Mapping[str, Key] = {
    "suite": Key(Kind.WORD, "probes that are asked (default smoke)", words=SUITES),
    "ready-within": Key(Kind.NUMBER, "seconds to get ready (default 3600)"),
    "baseline": Key(Kind.TEXT, "name of a baseline, or a run, that every launch is compared with"),
    "soak": Key(Kind.DURATION, "how long to go on probing once validated: 30s, 10m, 1h30m"),
    "deeper": Key(Kind.NAMED, "tasks for another harness on this machine", {
        "with": Key(Kind.WORD, "the harness (default: the first that is installed)", words=("sgl-eval", "lm-eval")),
        "n": _N, "at-least": _AT_LEAST,
    }),
    "also": Key(Kind.TEXTS, "ids of probes that are run although the suite does not hold them", folder="probes"),
    "skip": Key(Kind.TEXTS, "ids of probes that are not run; a skipped probe did not pass", folder="probes"),
    "model": Key(Kind.TEXT, "name that /v1/models must list (default: served_model_name of the server)"),
    "chat": Key(Kind.FLAG, "false for a base model without a chat template: probes then use /generate"),
    "thinking": Key(Kind.FLAG, "true lets a reasoning model think in the probes (default false)"),
    "known-answer": Key(Kind.QUESTIONS, "in place of the built-in questions; false: the model is too weak for any"),
    "timeout": Key(Kind.NUMBER, "seconds one request may take (default 30 for smoke and soak, 120 for the others)"),
    "concurrency": Key(Kind.COUNT, "most requests in flight at once (default: what the server allows, at most 64)"),
    "prompt-nll": Key(Kind.NUMBER, "largest surprise of plain English, nats per token (default 6)"),
    "common-words": Key(Kind.SHARE, "share of common English words in prose (default 0.15; 0 for other languages)"),
    "accuracy": Key(Kind.NAMED, "bundled sets and what is expected of them", {
        "at-least": _AT_LEAST, "margin": Key(Kind.SHARE, "loss against the baseline that is accepted (default 0.05)"),
        "n": _N, "max-tokens": Key(Kind.COUNT, "tokens an answer may have"),
    }, folder="accuracy"),
    "acceptance": Key(Kind.PARTS, "tokens per verify step of speculative decoding, bonus token included", {
        "at-least": Key(Kind.NUMBER, "least mean"), "at-most": Key(Kind.NUMBER, "largest mean"),
    }),
    "speed": Key(Kind.PARTS, "what the speed is judged by, and how it is measured", {
        "decode-at-least": Key(Kind.NUMBER, "tok/s of a single stream"),
        "ttft-at-most": Key(Kind.NUMBER, "seconds to the first token"),
        "margin": Key(Kind.NUMBER, "loss against the baseline that is accepted, a share (default 0.05)"),
        "repeats": Key(Kind.COUNT, "single streams that are measured (default 5)"),
        "tokens": Key(Kind.COUNT, "tokens of a measured stream"),
        "floor": Key(Kind.NUMBER, "minimum decode rate of any stream, tok/s (default 1)"),
        "concurrency": Key(Kind.COUNTS, "numbers of streams at once (default 4, 16 and what the server allows)"),
    }),
    "fingerprint": Key(Kind.PARTS, "numbers of a fixed prompt against the baseline", {
        "kl-at-most": Key(Kind.NUMBER, "nats per token (default 0.03)"),
    }),
}  # fmt: skip
# Not for profiles: what the profile's own `accept` becomes on its way to the probes.
_INNER = {"accept-warnings": Key(Kind.NAMED, "warning id → {reason, until}", {
    "reason": Key(Kind.TEXT, ""), "until": Key(Kind.TEXT, ""),
})}  # fmt: skip


def parse_expect(expect: Mapping[str, Any]) -> Expect:
    """The expectations as written in a profile → the record. Raises ExpectError for what is not understood."""
    plain = _parts(expect, {**KEYS, **_INNER}, "expect")
    if "soak" in plain:
        plain["soak"] = duration(plain["soak"])
    if plain.get("known_answer") is False:
        del plain["known_answer"]
        return replace(msgspec.convert(plain, Expect, strict=False), known_answer=False)
    return msgspec.convert(plain, Expect, strict=False)


def duration(text: object) -> float:
    """Seconds of `90`, `30s`, `10m`, `1h30m`. Raises ExpectError."""
    written = str(text).strip()
    parts = re.findall(r"([\d.]+)([smhd]?)", written)
    try:
        if parts and "".join(number + unit for number, unit in parts) == written:
            return sum(float(number) * _UNITS[unit] for number, unit in parts)
    except ValueError:
        pass
    raise ExpectError(f"invalid duration `{written}`: write 30s, 10m or 1h30m")


def _parts(values: Mapping[str, Any], keys: Mapping[str, Key], where: str) -> dict[str, Any]:
    found = {}
    for name, value in values.items():
        spelled = str(name).replace("_", "-")
        if spelled not in keys:
            raise ExpectError(f"unknown key `{name}` in `{where}`: {did_you_mean(spelled, keys)}")
        if value is None:
            continue  # as if it were not there
        found[spelled.replace("-", "_")] = _value(value, keys[spelled], f"{where}.{spelled}")
    return found


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
    wanted = f"{key.kind} ({', '.join(key.words or key.parts)})" if key.words or key.parts else str(key.kind)
    hint = f"; {did_you_mean(str(value), key.words)}" if key.words else ""
    raise ExpectError(f"`{where}: {value}` is not {wanted}{hint}")


def _named(part: Any, key: Key, where: str) -> dict[str, Any]:
    return _value(part if part is not None else {}, Key(Kind.PARTS, key.text, key.parts), where)  # type: ignore[no-any-return]


def fits(value: Any, key: Key) -> bool:
    """Whether a single value is of its kind. A number is one, no text that looks like one."""
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
