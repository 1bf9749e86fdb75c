"""Translate flags to canonical names: the newest name of an option, whatever release or alias a profile uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from checks.engine.flag_schema import FlagSchema, Found
from checks.vocabulary import Finding, FlagValue, Remedy, Severity


def normalise(flags: Mapping[str, FlagValue], schema: FlagSchema) -> tuple[dict[str, FlagValue], list[Finding]]:
    """Return the flags under their canonical (newest) names, and the findings on options given under two names.

    An unknown name does not change. `no-x` becomes `x: False`; a plain `false` switch is left out. Of two names for one
    option the last one counts, as in argparse.
    """
    normalised: dict[str, FlagValue] = {}
    for spelled, value in flags.items():
        name = spelled.removeprefix("--")
        canonical = schema.canonical(name) or name
        positive = negated_name(schema.find(name).name, schema)
        if positive is not None:
            normalised[schema.canonical(positive) or positive] = value is False
        elif value is not False or canonical_is_negatable(canonical, schema):
            normalised[canonical] = value
    return normalised, list(given_twice([(n, v) for n, v in flags.items() if v is not False], schema))


def canonical_is_negatable(canonical: str, schema: FlagSchema) -> bool:
    """Whether `false` has a meaning for this flag: the form `--no-…` exists."""
    flag = schema.by_name.get(schema.spell(canonical) or canonical)
    return flag is not None and flag.negatable


def negated_name(name: str, schema: FlagSchema) -> str | None:
    """Return `x` if `name` is the `no-x` form of an option, else None."""
    flag = schema.by_name.get(name)
    if flag is None or not flag.negatable or not name.startswith("no-"):
        return None
    return name[3:] if name[3:] in flag.names else None


def given_twice(flags: Iterable[tuple[str, FlagValue]], schema: FlagSchema) -> Iterable[Finding]:
    """Report each option that is given under two names: argparse silently takes the last one."""
    by_option: dict[str, list[tuple[str, FlagValue]]] = {}
    for spelled, value in flags:
        match = schema.find(spelled)
        if match.flag is not None:
            by_option.setdefault(match.flag.dest, []).append((spelled, _meaning(match, value, schema)))
    for dest, uses in by_option.items():
        if len(uses) < 2:
            continue
        same = all(value == uses[0][1] for _, value in uses)
        names = " and ".join(f"--{name}" for name, _ in uses)
        keep, drop = uses[-1][0], tuple(name for name, _ in uses[:-1])
        yield Finding(
            id="flag-given-twice",
            severity=Severity.WARNING if same else Severity.ERROR,
            message=f"{names} are names of one option (`{dest}`)"
            + ("" if same else "; SGLang silently uses the last value"),
            remedies=(Remedy(text=f"Keep only one of these flags, for example --{keep}.", unset=drop),),
            subject=f"flag.{keep}",
        )


def _meaning(match: Found, value: FlagValue, schema: FlagSchema) -> FlagValue:
    """Return what an option stores: its value, the constant of a retired switch, or False for `no-x`."""
    if negated_name(match.name, schema) is not None:
        return False
    stored = match.flag.const if match.flag is not None and value is True else None
    return value if stored is None else str(stored)
