"""What a caller knows and what a log says about itself → the Facts that conditions of signatures see."""

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
"""Fewer arguments than any release has: the line is an excerpt and says nothing about the release."""


def merge(own: LogFacts, known: Mapping[str, Any], engine: str, phase: str) -> Facts:
    """Facts of the launch behind a log. The caller goes first; the log fills what the caller left open."""
    case: dict[str, Any] = {name: value for name, value in known.items() if value}
    version = engine or str(case.get("engine_version") or "") or own.engine or release_of(own.arguments)
    case["engine_version"] = version or None
    case["flags"] = {**_asked(own.flags, version), **_flags(case.get("flags"))}
    case["env"] = {**own.env, **_mapping(case.get("env"))}
    case["observed"] = case.get("observed") or own.observed
    case["gpu"] = {**own.gpu, **_mapping(case.get("gpu"))}
    case["model"] = {**own.model, **_mapping(case.get("model"))}
    facts, _ = builder.build(builder.from_case(case))
    return {**facts, "log.phase": phase}


def release_of(arguments: Iterable[str]) -> str:
    """The release whose arguments these are: the newest that brought one of them. Empty when they are too few."""
    names = [name.replace("_", "-") for name in arguments]
    if len(names) < _WHOLE_LINE:
        return ""
    firsts = {span.first for name in names if (span := flag_span(name))}
    return max(firsts, key=Version, default="")


def _asked(flags: Mapping[str, FlagValue], version: str) -> dict[str, FlagValue]:
    """Without what stands at the default of the release."""
    schema = load(version)
    found = {}
    for name, value in flags.items():
        flag = schema.find(name).flag
        if flag is None or str(flag.default) != str(value):
            found[name] = value
    return found


def _flags(value: Any) -> dict[str, Any]:
    """Flags of a caller, in the log's spelling, so that one flag is not there twice."""
    return {flag_key(str(name)): item for name, item in _mapping(value).items()}


def _mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"name": value}
    return {name: item for name, item in value.items() if item is not None} if isinstance(value, Mapping) else {}
