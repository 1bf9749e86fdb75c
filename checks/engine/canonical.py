"""Flags under one name: the newest spelling, whatever release or alias they were written for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from checks.engine.flag_schema import FlagSchema, Found
from checks.vocabulary import Finding, FlagValue, Remedy, Severity


def normalise(flags: Mapping[str, FlagValue], schema: FlagSchema) -> tuple[dict[str, FlagValue], list[Finding]]:
    """Flags under their canonical (newest) names, and the findings on names given twice.

    A name that nobody knows stays as it is. `no-x` becomes `x: False`; a plain `false` switch is left out. Of two
    spellings of one flag the last one counts, as in argparse.
    """
    found: dict[str, FlagValue] = {}
    for spelled, value in flags.items():
        name = spelled.removeprefix("--")
        canonical = schema.canonical(name) or name
        positive = negated_name(schema.find(name).name, schema)
        if positive is not None:
            found[schema.canonical(positive) or positive] = value is False
        elif value is not False or canonical_is_negatable(canonical, schema):
            found[canonical] = value
    return found, list(given_twice([(n, v) for n, v in flags.items() if v is not False], schema))


def canonical_is_negatable(canonical: str, schema: FlagSchema) -> bool:
    """Does `false` say something for this flag, namely `--no-…`?"""
    flag = schema.by_name.get(schema.spell(canonical) or canonical)
    return flag is not None and flag.negatable


def negated_name(name: str, schema: FlagSchema) -> str | None:
    """`x` when `name` is the `no-x` form of an option, else None."""
    flag = schema.by_name.get(name)
    if flag is None or not flag.negatable or not name.startswith("no-"):
        return None
    return name[3:] if name[3:] in flag.names else None


def given_twice(given: Iterable[tuple[str, FlagValue]], schema: FlagSchema) -> Iterable[Finding]:
    """One option under two names: argparse takes the last one, silently."""
    by_option: dict[str, list[tuple[str, FlagValue]]] = {}
    for spelled, value in given:
        found = schema.find(spelled)
        if found.flag is not None:
            by_option.setdefault(found.flag.dest, []).append((spelled, _meaning(found, value, schema)))
    for dest, uses in by_option.items():
        if len(uses) < 2:
            continue
        same = all(value == uses[0][1] for _, value in uses)
        names = " and ".join(f"--{name}" for name, _ in uses)
        keep, drop = uses[-1][0], tuple(name for name, _ in uses[:-1])
        yield Finding(
            id="flag-given-twice",
            severity=Severity.WARNING if same else Severity.ERROR,
            message=f"{names} are one option (`{dest}`)" + ("" if same else "; the last value silently wins"),
            remedies=(Remedy(text=f"Keep one of them, for example --{keep}.", unset=drop),),
            subject=f"flag.{keep}",
        )


def _meaning(found: Found, value: FlagValue, schema: FlagSchema) -> FlagValue:
    """What an option stores: its value, the constant behind a retired switch, False for `no-x`."""
    if negated_name(found.name, schema) is not None:
        return False
    stored = found.flag.const if found.flag is not None and value is True else None
    return value if stored is None else str(stored)
