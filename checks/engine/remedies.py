"""The remedies of an entry that fit one launch: release, facts, captured names, flags as that release spells them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace
from packaging.version import Version

from checks.catalog.conditions import Facts, parse_condition
from checks.engine.flag_history import flag_span
from checks.engine.flag_schema import FlagSchema, load
from checks.vocabulary import EngineRange, FlagValue, Remedy, parse_version

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_FACT = re.compile(r"\{([a-z_]+\.[\w.-]+)\}")


def fitting(remedies: Iterable[Remedy], facts: Facts, captures: Mapping[str, str]) -> tuple[Remedy, ...]:
    """In the entry's order. One that sets a flag which the release does not have is left out."""
    version = facts.get("engine.version")
    schema = load(version) if version else None
    return tuple(_spelled(remedies, facts, captures, schema))


def for_draft(remedy: Remedy) -> Remedy:
    """What helps the model, said of the draft model, whose worker it was that failed."""
    renamed = {"speculative-draft-model-path" if name == "model-path" else name: to for name, to in remedy.set.items()}
    return replace(remedy, set=renamed)


def fill(template: str, captures: Mapping[str, str]) -> str:
    """A text with `{name}` replaced by what a signature captured; names it did not capture stay."""
    return _PLACEHOLDER.sub(lambda found: captures.get(found[1], found[0]), template)


def wish(specifier: str, facts: Facts) -> str:
    """A version specifier with each `{fact}` replaced by its value, `<version>` where nobody knows it."""
    return _FACT.sub(lambda found: str(facts.get(found[1]) or "<version>"), specifier)


def _spelled(
    remedies: Iterable[Remedy], facts: Facts, captures: Mapping[str, str], schema: FlagSchema | None
) -> Iterator[Remedy]:
    version = facts.get("engine.version")
    seen = {**facts, **{f"captured.{name}": value for name, value in captures.items()}}
    for remedy in remedies:
        if not remedy.engine.contains(version) or (remedy.when and not parse_condition(remedy.when).holds(seen)):
            continue
        wanted: dict[str, FlagValue] | None = _set(remedy, schema)
        if wanted is None:
            continue
        unset = [_typed(name, wanted, schema) for name in _existing((fill(n, captures) for n in remedy.unset), schema)]
        upgrade = {name: to for name, to in remedy.upgrade.items() if name != "sglang" or not _is_in(to, version)}
        if (remedy.upgrade and not upgrade) or (remedy.unset and not unset and not wanted):
            continue  # nothing of it is left to do
        yield replace(
            remedy,
            require={name: wish(version_wish, facts) for name, version_wish in remedy.require.items()},
            upgrade=upgrade,
            text=fill(remedy.text, captures),
            set={fill(name, captures): _value(value, captures) for name, value in wanted.items()},
            unset=tuple(dict.fromkeys(unset)),
            env={name: fill(value, captures) for name, value in remedy.env.items()},
        )


def _set(remedy: Remedy, schema: FlagSchema | None) -> dict[str, FlagValue] | None:
    found: dict[str, FlagValue] = {}
    for name, value in remedy.set.items():
        spelled = name if "{" in name else _spell(name, schema)
        if not spelled:
            return None
        found[spelled] = value
    return found


def _existing(names: Iterable[str], schema: FlagSchema | None) -> Iterator[str]:
    """Without names that only a later release has."""
    for name in names:
        span = flag_span(name) if schema is not None and schema.spell(name) is None else None
        if span is None or schema is None or Version(span.first) <= Version(schema.version):
            yield name


def _is_in(specifier: str, version: str | None) -> bool:
    return bool(version) and parse_version(str(version)) is not None and EngineRange(specifier).contains(version)


def _spell(name: str, schema: FlagSchema | None) -> str | None:
    return name if schema is None else schema.spell(name)


def _typed(name: str, wanted: Mapping[str, FlagValue], schema: FlagSchema | None) -> str:
    """What to take away: as the release has it, or as somebody typed it where the release has only the new name."""
    spelled = _spell(name, schema)
    return name if spelled is None or spelled in wanted else spelled


def _value(value: FlagValue, captures: Mapping[str, str]) -> FlagValue:
    return fill(value, captures) if isinstance(value, str) else value
