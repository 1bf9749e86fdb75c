"""Changes of the command line between two engine releases.

A renamed option is one rename, not a removal and an addition; the table of renames is in `checks.engine.flag_history`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from checks.engine.canonical import normalise
from checks.engine.flag_history import Successor, successor
from checks.engine.flag_schema import Flag, FlagSchema
from checks.vocabulary import FlagValue

ChangeKind = Literal["added", "removed", "renamed", "deprecated", "default", "choices", "type", "required"]


class Change(Struct, frozen=True, kw_only=True):
    """One difference of one option, under its canonical name."""

    kind: ChangeKind
    flag: str
    before: str = ""
    after: str = ""
    note: str = ""


def diff(old: FlagSchema, new: FlagSchema) -> list[Change]:
    """Return the changes from `old` to `new`, ordered by canonical name."""
    before, after = _by_canonical(old), _by_canonical(new)
    changes: list[Change] = []
    for name in sorted({*before, *after}):
        changes.extend(_changes(name, before.get(name), after.get(name), (old, new)))
    return changes


def default_changes(flags: Mapping[str, FlagValue], old: FlagSchema, new: FlagSchema) -> list[Change]:
    """Return the changed defaults of the options that these flags leave out, under any of their names."""
    stated = set(normalise(flags, old)[0]) | set(normalise(flags, new)[0])
    return [change for change in diff(old, new) if change.kind == "default" and change.flag not in stated]


def _by_canonical(schema: FlagSchema) -> dict[str, Flag]:
    """Return one flag for each canonical name, preferring the flag that is not deprecated."""
    flags: dict[str, Flag] = {}
    for flag in schema.flags:
        name = schema.canonical(flag.names[0]) or flag.names[0]
        if name not in flags or flags[name].deprecated:
            flags[name] = flag
    return flags


def _changes(
    name: str, before: Flag | None, after: Flag | None, schemas: tuple[FlagSchema, FlagSchema]
) -> Iterator[Change]:
    if before is None and after is not None:
        yield Change(kind="added", flag=name, after=_shown(after.default), note=after.help)
    elif before is not None and after is None:
        entry = successor(name) or successor(before.names[0])
        instead = " ".join(f"--{n} {v}" for n, v in entry.set.items()) if entry else ""
        yield Change(kind="removed", flag=name, before=_shown(before.default), after=instead, note=_note(entry))
    elif before is not None and after is not None:
        yield from _of_both(name, before, after, schemas)


def _of_both(name: str, before: Flag, after: Flag, schemas: tuple[FlagSchema, FlagSchema]) -> Iterator[Change]:
    old_name, new_name = schemas[0].spell(name) or name, schemas[1].spell(name) or name
    kept = schemas[1].by_name.get(old_name)
    if old_name != new_name and (kept is None or kept.deprecated):
        yield Change(kind="renamed", flag=name, before=old_name, after=new_name)
    if after.deprecated and not before.deprecated:
        yield Change(kind="deprecated", flag=name, after=after.replacement or "", note=after.help)
    if before.default != after.default:
        yield Change(kind="default", flag=name, before=_shown(before.default), after=_shown(after.default))
    if before.choices != after.choices and set(before.choices or ()) != set(after.choices or ()):
        yield Change(kind="choices", flag=name, **_choices(before.choices, after.choices))
    if (before.type, before.nargs) != (after.type, after.nargs):
        yield Change(kind="type", flag=name, before=_type(before), after=_type(after))
    if before.required != after.required:
        yield Change(kind="required", flag=name, before=str(before.required), after=str(after.required))


def _choices(before: Iterable[Any] | None, after: Iterable[Any] | None) -> dict[str, str]:
    """Return the removed and the added choices; the full lists, or `any`, when one release has no list."""
    if before is None or after is None:
        return {"before": _listed(before), "after": _listed(after)}
    removed, added = [c for c in before if c not in set(after)], [c for c in after if c not in set(before)]
    return {"before": _listed(removed), "after": _listed(added)}


def _listed(choices: Iterable[Any] | None) -> str:
    return "any" if choices is None else ", ".join(str(c) for c in choices)


def _type(flag: Flag) -> str:
    if flag.is_switch:
        return "switch"
    return f"{flag.type or 'str'}" + (f" ({flag.nargs})" if flag.nargs is not None else "")


def _shown(value: Any) -> str:
    return "" if value is None else str(value)


def _note(entry: Successor | None) -> str:
    return "" if entry is None else entry.note
