"""Select the remedies of an entry that apply to one launch, with captured names filled in and the release's flag names.

`canonical` translates in the other direction, to the newest names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace
from packaging.version import Version

from checks.catalog.conditions import Facts, parse_condition
from checks.engine.flag_history import flag_span
from checks.engine.flag_schema import FlagSchema, load
from checks.engine.tailoring import is_empty, tailored
from checks.vocabulary import EngineRange, FlagValue, Remedy, parse_version

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_FACT = re.compile(r"\{([a-z_]+\.[\w.-]+)\}")


def fitting(
    remedies: Iterable[Remedy], facts: Facts, captures: Mapping[str, str], resolved: Mapping[str, Any] | None = None
) -> tuple[Remedy, ...]:
    """Return the remedies that apply, in the entry's order, without those that set a flag unknown to the release.

    `captures` are the names that the log contains; `resolved` are the server args that it reports, by Python name.
    """
    version = facts.get("engine.version")
    schema = load(version) if version else None
    spelled = _spelled(remedies, facts, captures, schema)
    fitted = (tailored(remedy, facts, schema or load(), resolved or {}) for remedy in spelled)
    return tuple(remedy for remedy in fitted if not is_empty(remedy))


def for_draft(remedy: Remedy) -> Remedy:
    """Return a remedy for the model as a remedy for the draft model: the worker of the draft model failed."""
    renamed = {"speculative-draft-model-path" if name == "model-path" else name: to for name, to in remedy.set.items()}
    return replace(remedy, set=renamed)


def fill(template: str, captures: Mapping[str, str]) -> str:
    """Return a text with each `{name}` replaced by the captured value; names that were not captured do not change."""
    return _PLACEHOLDER.sub(lambda match: captures.get(match[1], match[0]), template)


def fill_specifier(specifier: str, facts: Facts) -> str:
    """Return a version specifier with each `{fact}` replaced by its value; by `<version>` for an unknown fact."""
    return _FACT.sub(lambda match: str(facts.get(match[1]) or "<version>"), specifier)


def _spelled(
    remedies: Iterable[Remedy], facts: Facts, captures: Mapping[str, str], schema: FlagSchema | None
) -> Iterator[Remedy]:
    version = facts.get("engine.version")
    all_facts = {**facts, **{f"captured.{name}": value for name, value in captures.items()}}
    for remedy in remedies:
        if not remedy.engine.contains(version) or (remedy.when and not parse_condition(remedy.when).holds(all_facts)):
            continue
        flags: dict[str, FlagValue] | None = _set(remedy, schema)
        if flags is None:
            continue
        captured = [fill(name, captures).lstrip("-") for name in remedy.unset if "{" in name]
        written = _existing((name for name in remedy.unset if "{" not in name), schema)
        unset = [*captured, *(_typed(name, flags, schema) for name in written)]
        upgrade = _upgrade(remedy, version, captures.get("flag", ""))
        if (remedy.upgrade and not upgrade) or (remedy.unset and not unset and not flags):
            continue  # nothing remains to do
        yield replace(
            remedy,
            require={name: fill_specifier(specifier, facts) for name, specifier in remedy.require.items()},
            upgrade=upgrade,
            text=fill(remedy.text, captures),
            set={fill(name, captures): _value(value, captures) for name, value in flags.items()},
            unset=tuple(dict.fromkeys(unset)),
            env={name: fill(value, captures) for name, value in remedy.env.items()},
        )


def _upgrade(remedy: Remedy, version: str | None, flag: str) -> dict[str, str]:
    """Return the upgrades that change the release; for an option that the log names, to the first release with it."""
    upgrade = dict(remedy.upgrade)
    if flag and "sglang" in upgrade:
        span = flag_span(flag.lstrip("-").replace("_", "-"))
        upgrade = {"sglang": f">={span.first}"} if span else {}
    return {name: to for name, to in upgrade.items() if name != "sglang" or not _is_in(to, version)}


def _set(remedy: Remedy, schema: FlagSchema | None) -> dict[str, FlagValue] | None:
    flags: dict[str, FlagValue] = {}
    for name, value in remedy.set.items():
        spelled = name if "{" in name else _spell(name, schema)
        if not spelled:
            return None
        flags[spelled] = value
    return flags


def _existing(names: Iterable[str], schema: FlagSchema | None) -> Iterator[str]:
    """Drop the names that only later releases have."""
    for name in names:
        span = flag_span(name) if schema is not None and schema.spell(name) is None else None
        if span is None or schema is None or Version(span.first) <= Version(schema.version):
            yield name


def _is_in(specifier: str, version: str | None) -> bool:
    return bool(version) and parse_version(str(version)) is not None and EngineRange(specifier).contains(version)


def _spell(name: str, schema: FlagSchema | None) -> str | None:
    return name if schema is None else schema.spell(name)


def _typed(name: str, flags: Mapping[str, FlagValue], schema: FlagSchema | None) -> str:
    """Return the flag name to remove: the release's name, or the name as typed if the remedy sets the new name."""
    spelled = _spell(name, schema)
    return name if spelled is None or spelled in flags else spelled


def _value(value: FlagValue, captures: Mapping[str, str]) -> FlagValue:
    return fill(value, captures) if isinstance(value, str) else value
