"""Merge what a caller knows with what a log shows into the Facts that the conditions of patterns see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from packaging.version import Version

from checks.catalog.conditions import Facts
from checks.during.log.server_args import LogFacts
from checks.engine.flag_history import flag_span
from checks.engine.flag_schema import load
from checks.facts import launch_evidence as builder
from checks.vocabulary import FlagValue, flag_key

_WHOLE_LINE = 100
"""Every release has more arguments than this. A shorter line is an excerpt and does not identify the release."""


def merge(log: LogFacts, known: Mapping[str, Any], engine: str, phase: str) -> Facts:
    """Return the facts of the launch behind a log. The caller's values take precedence; the log adds missing ones."""
    case: dict[str, Any] = {name: value for name, value in known.items() if value}
    version = engine or str(case.get("engine_version") or "") or log.engine or release_of(log.arguments)
    case["engine_version"] = version or None
    case["flags"] = {**_without_defaults(log.flags, version), **_flags(case.get("flags"))}
    case["env"] = {**log.env, **_mapping(case.get("env"))}
    case["observed"] = case.get("observed") or log.observed
    case["gpu"] = {**log.gpu, **_mapping(case.get("gpu"))}
    case["model"] = {**log.model, **_mapping(case.get("model"))}
    facts, _ = builder.build(builder.from_case(case))
    return {**facts, "log.phase": phase}


def stated_flags(known: Mapping[str, Any], version: str) -> frozenset[str]:
    """Return the facts of the flags that a caller states, under their canonical names; empty if it states none."""
    flags = _flags(known.get("flags"))
    schema = load(version) if flags else None
    return frozenset(f"flag.{schema.canonical(name) or name}" for name in flags) if schema else frozenset()


def release_of(arguments: Iterable[str]) -> str:
    """Return the newest release that introduced one of these arguments; empty if there are too few of them."""
    names = [name.replace("_", "-") for name in arguments]
    if len(names) < _WHOLE_LINE:
        return ""
    firsts = {span.first for name in names if (span := flag_span(name))}
    return max(firsts, key=Version, default="")


def _without_defaults(flags: Mapping[str, FlagValue], version: str) -> dict[str, FlagValue]:
    """Drop the flags whose value is the default of the release."""
    schema = load(version)
    changed = {}
    for name, value in flags.items():
        flag = schema.find(name).flag
        # an option that an exactly known release does not have was not passed: the engine stores it by itself
        if not schema.exact if flag is None else str(flag.default) != str(value):
            changed[name] = value
    return changed


def _flags(value: Any) -> dict[str, Any]:
    """Return a caller's flags with the names that the log uses, so that no flag occurs under two names."""
    return {flag_key(str(name)): item for name, item in _mapping(value).items()}


def _mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"name": value}
    return {name: item for name, item in value.items() if item is not None} if isinstance(value, Mapping) else {}
