"""Fit a remedy to one launch: options that overrule it, numbers that arithmetic can give, names without a value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from checks.catalog.conditions import Facts
from checks.engine.flag_schema import FlagSchema
from checks.vocabulary import FlagValue, Remedy

_OPEN = re.compile(r"\{\w+\}")
_OVERRULING = ("enforce-", "enable-")
_FRACTIONS = {"mem-fraction-static": 0.05}  # option → size of one step
_HALVED = frozenset({
    "max-running-requests", "chunked-prefill-size", "max-total-tokens", "max-prefill-tokens", "hicache-size",
    "cuda-graph-max-bs", "cuda-graph-max-bs-decode", "cuda-graph-max-bs-prefill", "max-mamba-cache-size",
})  # fmt: skip


def tailored(remedy: Remedy, facts: Facts, schema: FlagSchema, resolved: Mapping[str, Any]) -> Remedy:
    """Return the remedy for the launch that the facts describe.

    `resolved` are the server args that a log reports, by Python name: they contain what the engine itself chose.
    """
    unset = tuple(dict.fromkeys((*remedy.unset, *_overruling(remedy, facts, schema))))
    steps = {name: _next(name, value, facts, schema, resolved) for name, value in remedy.set.items()}
    now = [f"--{name} is now {before}" for name, (before, after) in steps.items() if after != remedy.set[name]]
    text = _OPEN.sub("the value", remedy.text.replace("{flag}", "the option"))
    values = [*(after for _, after in steps.values()), *remedy.env.values()]
    return replace(
        remedy,
        unset=tuple(name for name in unset if not _OPEN.search(name)),
        set={name: after for name, (_, after) in steps.items() if not _OPEN.search(name)},
        text=f"{text} {'; '.join(now)}.".strip() if now else text,
        concrete=remedy.concrete or (bool(now) and not any(isinstance(v, str) and v.startswith("<") for v in values)),
    )


def is_empty(remedy: Remedy) -> bool:
    """Return whether a remedy neither changes anything nor says anything."""
    changes = (remedy.set, remedy.unset, remedy.env, remedy.unset_env, remedy.require, remedy.upgrade)
    return not any(changes) and not (remedy.run or remedy.inspect or remedy.text)


def _overruling(remedy: Remedy, facts: Facts, schema: FlagSchema) -> Iterator[str]:
    """Yield the options of the launch that overrule a `disable-x` of the remedy: `enforce-x`, `enable-x`."""
    for name, value in remedy.set.items():
        if not name.startswith("disable-") or value is not True:
            continue
        feature = name.removeprefix("disable-")
        for option in (f"{prefix}{feature}" for prefix in _OVERRULING):
            if facts.get(f"flag.{schema.canonical(option) or option}") not in (None, False):
                yield schema.spell(option) or option


def _next(
    name: str, value: FlagValue, facts: Facts, schema: FlagSchema, resolved: Mapping[str, Any]
) -> tuple[str, FlagValue]:
    """Return the value now and the value to try for `<smaller>` and `<larger>`; the value itself for anything else."""
    if value not in ("<smaller>", "<larger>"):
        return "", value
    flag = schema.by_name.get(name)
    canonical = schema.canonical(name) or name
    now = (
        facts.get(f"flag.{canonical}")
        or (resolved.get(flag.dest) if flag else None)
        or resolved.get(name.replace("-", "_"))
    )
    try:
        number = float(str(now))
    except ValueError:
        return "", value
    up = value == "<larger>"
    if canonical in _FRACTIONS:
        step = _FRACTIONS[canonical] if up else -_FRACTIONS[canonical]
        return str(now), f"{min(max(number + step, 0.1), 0.97):.2f}".rstrip("0")
    if canonical in _HALVED and number >= 2:
        return str(now), str(int(number * 2 if up else number // 2))
    return "", value
