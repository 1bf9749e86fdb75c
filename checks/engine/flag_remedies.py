"""Remedies for a flag that a release rejects, deprecates or does not have.

The flags in a remedy are canonical (newest) names; its text spells them for the release. The table of successors is in
`checks.engine.flag_history`; `flags` creates the findings.
"""

from __future__ import annotations

from collections.abc import Mapping

from checks.engine.flag_history import Successor, canonical_elsewhere, flag_span, successor
from checks.engine.flag_schema import FlagSchema
from checks.engine.foreign import ForeignOption, foreign
from checks.vocabulary import FlagValue, Remedy


def remedies_for(name: str, value: FlagValue, flags: Mapping[str, FlagValue], schema: FlagSchema) -> tuple[Remedy, ...]:
    """Return what the release offers instead of flag `name` with `value`; empty when no successor is known.

    `flags` are all flags of the launch: a successor may need the value of another flag.
    """
    entry = successor(name)
    if entry is not None and entry.kind == "replaced":
        remedy = _replacement(entry, value, flags, schema)
        return (remedy,) if remedy is not None else leave_out(name, entry.note)
    if entry is not None and entry.kind == "dropped":
        return leave_out(name, entry.note)
    other = foreign(name) if flag_span(name) is None else None
    if other is not None:
        return (_translated(other, value, flags, schema),)
    spelled = schema.spell(name)
    if spelled is None or spelled == name:
        return ()
    return (Remedy(text=f"Use --{spelled}; its values are the same.", set={spelled: value}, unset=(name,)),)


def _translated(other: ForeignOption, value: FlagValue, flags: Mapping[str, FlagValue], schema: FlagSchema) -> Remedy:
    """Return the counterpart of an option of another program; its removal if there is none."""
    if not other.set:
        return Remedy(text=f"Remove --{other.old}, an option of {other.of}. {other.note}".strip(), unset=(other.old,))
    entry = Successor(old=other.old, kind="replaced", set=other.set, note=f"--{other.old} is an option of {other.of}.")
    return _replacement(entry, value, flags, schema) or leave_out(other.old, entry.note)[0]


def look_alikes(name: str, value: FlagValue, schema: FlagSchema) -> tuple[Remedy, ...]:
    """Return one remedy for each flag of the release whose name is similar to `name`."""
    return tuple(
        Remedy(text=f"Did you mean --{other}?", set={other: value}, unset=(name,)) for other in schema.suggestions(name)
    )


def leave_out(name: str, note: str = "") -> tuple[Remedy, ...]:
    """Return the remedy for a flag without a successor: remove it."""
    return (Remedy(text=f"Remove --{name}. {note}".strip(), unset=(name,)),)


def _replacement(
    entry: Successor, value: FlagValue, flags: Mapping[str, FlagValue], schema: FlagSchema
) -> Remedy | None:
    """Return the successors with their values filled in; None when the release lacks one of them."""
    filled: dict[str, FlagValue] = {}
    words = []
    for target, template in entry.set.items():
        spelled = schema.spell(target)
        if spelled is None or not _accepts(schema, spelled, template):
            return None
        filled[spelled] = _filled(template, value, entry, flags)
        words.append(f"--{spelled}" if filled[spelled] is True else f"--{spelled} {filled[spelled]}")
    words += [f"{variable}={setting}" for variable, setting in entry.env.items()]
    placeholders = [v for v in filled.values() if isinstance(v, str) and v.startswith("<")]
    return Remedy(
        text=f"Use {' and '.join(words)} instead. {entry.note}".strip(),
        set=filled,
        unset=(entry.old, *entry.unset),
        env=dict(entry.env),
        concrete=not placeholders,
    )


def _accepts(schema: FlagSchema, name: str, template: FlagValue) -> bool:
    choices = schema.by_name[name].choices
    return choices is None or not isinstance(template, str) or template.startswith("<") or template in choices


def _filled(template: FlagValue, value: FlagValue, entry: Successor, flags: Mapping[str, FlagValue]) -> FlagValue:
    """Return the value for a template: `<value>` is the old flag's value, `<other-flag>` that of another flag."""
    if template == "<value>":
        return entry.values.get(value, value) if isinstance(value, str) else value
    if isinstance(template, str) and template.startswith("<"):
        named = template.strip("<>")
        same = (v for n, v in flags.items() if n == named or canonical_elsewhere(n) == named or named == f"{n}-size")
        return next(same, template)
    return template
