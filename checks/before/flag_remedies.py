"""What to give instead of a flag that a release refuses, deprecates or does not have.

Flags of a remedy are canonical (newest) names; its text spells them for the release. The table behind it is
`engine_history.successors`; who asks is `flag_check`.
"""

from __future__ import annotations

from collections.abc import Mapping

from checks.engine.flag_history import Successor, canonical_elsewhere, successor
from checks.engine.flag_schema import FlagSchema
from checks.vocabulary import FlagValue, Remedy


def remedies_for(name: str, value: FlagValue, flags: Mapping[str, FlagValue], schema: FlagSchema) -> tuple[Remedy, ...]:
    """What the release has in place of flag `name` with `value`; empty when nothing is known.

    `flags` are the others of the launch: a successor may need the value of one of them.
    """
    entry = successor(name)
    if entry is not None and entry.kind == "replaced":
        remedy = _replacement(entry, value, flags, schema)
        return (remedy,) if remedy is not None else leave_out(name, entry.note)
    if entry is not None and entry.kind == "dropped":
        return leave_out(name, entry.note)
    here = schema.spell(name)
    if here is None or here == name:
        return ()
    return (Remedy(text=f"Write --{here}; the values are the same.", set={here: value}, unset=(name,)),)


def look_alikes(name: str, value: FlagValue, schema: FlagSchema) -> tuple[Remedy, ...]:
    return tuple(
        Remedy(text=f"Did you mean --{other}?", set={other: value}, unset=(name,)) for other in schema.suggestions(name)
    )


def leave_out(name: str, note: str = "") -> tuple[Remedy, ...]:
    """The remedy when nothing takes the place of a flag."""
    return (Remedy(text=f"Leave --{name} out. {note}".strip(), unset=(name,)),)


def _replacement(
    entry: Successor, value: FlagValue, flags: Mapping[str, FlagValue], schema: FlagSchema
) -> Remedy | None:
    """The successors with the old value or that of another flag put in; None where the release lacks one of them."""
    filled: dict[str, FlagValue] = {}
    words = []
    for target, wanted in entry.set.items():
        here = schema.spell(target)
        if here is None or not _takes(schema, here, wanted):
            return None
        filled[here] = _filled(wanted, value, entry, flags)
        words.append(f"--{here}" if filled[here] is True else f"--{here} {filled[here]}")
    words += [f"{variable}={setting}" for variable, setting in entry.env.items()]
    open_ends = [v for v in filled.values() if isinstance(v, str) and v.startswith("<")]
    return Remedy(
        text=f"Use {' and '.join(words)} instead. {entry.note}".strip(),
        set=filled,
        unset=(entry.old, *entry.unset),
        env=dict(entry.env),
        concrete=not open_ends,
    )


def _takes(schema: FlagSchema, name: str, wanted: FlagValue) -> bool:
    choices = schema.by_name[name].choices
    return choices is None or not isinstance(wanted, str) or wanted.startswith("<") or wanted in choices


def _filled(wanted: FlagValue, value: FlagValue, entry: Successor, flags: Mapping[str, FlagValue]) -> FlagValue:
    if wanted == "<value>":
        return entry.values.get(value, value) if isinstance(value, str) else value
    if isinstance(wanted, str) and wanted.startswith("<"):
        named = wanted.strip("<>")
        same = (v for n, v in flags.items() if n == named or canonical_elsewhere(n) == named or named == f"{n}-size")
        return next(same, wanted)
    return wanted
