"""Draw launches for `make truth`: pairs of flags, single flags at odd values, and profiles with one mutation.

A seed makes a draw repeatable. What is drawn is not meant to be sensible: the question is whether the check and the
engine agree about it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from checks.engine.flag_schema import Flag, FlagSchema
from checks.vocabulary import FlagValue
from launcher.profile.file import Profile

# They move the server, its files or its records, not what the engine makes of the launch.
_LEFT_OUT = frozenset({
    "model-path", "host", "port", "nccl-port", "device", "config", "dist-init-addr", "log-level", "log-level-http",
    "log-requests-target", "ssl-keyfile", "ssl-certfile", "ssl-ca-certs", "ssl-keyfile-password", "api-key", "help",
    "admin-api-key", "version",
})  # fmt: skip
_PLAUSIBLE: dict[str, tuple[FlagValue, ...]] = {"int": ("1", "2", "8"), "float": ("0.5", "0.9"), "str": ("auto",)}
_ODD: dict[str, tuple[FlagValue, ...]] = {
    "int": ("0", "-1", "999999", "1.5", "banana"),
    "float": ("0", "-0.1", "1.5", "nan", "banana"),
    "str": ("", "banana", "/does/not/exist", "{}"),
}


class Draw(Struct, frozen=True, kw_only=True):
    """One launch: its flags besides model and device, and why it was drawn."""

    name: str
    kind: str  # odd | pair | mutation
    flags: dict[str, FlagValue]
    note: str


def draw(schema: FlagSchema, profiles: Sequence[Profile], seed: int, count: int) -> list[Draw]:
    """Return `count` launches: two fifths odd values, two fifths pairs, one fifth mutated profiles."""
    rng = random.Random(seed)
    flags = [flag for flag in schema.flags if not flag.hidden and not _LEFT_OUT & set(flag.names)]
    odd, pairs = count * 2 // 5, count * 2 // 5
    drawn = [*_odd(flags, rng, odd), *_pairs(flags, rng, pairs)]
    drawn += _mutations(profiles, schema, flags, rng, count - len(drawn))
    return [Draw(name=f"{seed}-{number:04}", **item) for number, item in enumerate(drawn)]


def _odd(flags: Sequence[Flag], rng: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """Yield single flags at odd values, each flag once before any comes again."""
    for number in range(count):
        if number % len(flags) == 0:
            order = rng.sample(flags, len(flags))
        flag = order[number % len(flags)]
        value = rng.choice(_odd_values(flag))
        yield {"kind": "odd", "flags": {_name(flag): value}, "note": f"--{_name(flag)} at an odd value"}


def _pairs(flags: Sequence[Flag], rng: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """Yield launches of two to four flags at plausible values, so that new pairs come with every launch."""
    seen: set[frozenset[str]] = set()
    for _ in range(count):
        chosen = max((rng.sample(flags, rng.choice((2, 2, 3, 4))) for _ in range(8)), key=lambda some: _new(some, seen))
        seen |= {frozenset(pair) for pair in _couples(chosen)}
        values = {_name(flag): rng.choice(_plausible_values(flag)) for flag in chosen}
        yield {"kind": "pair", "flags": values, "note": " + ".join(values)}


def _new(flags: Sequence[Flag], seen: set[frozenset[str]]) -> int:
    return sum(frozenset(pair) not in seen for pair in _couples(flags))


def _couples(flags: Sequence[Flag]) -> list[tuple[str, str]]:
    names = [_name(flag) for flag in flags]
    return [(left, right) for number, left in enumerate(names) for right in names[:number]]


def _mutations(
    profiles: Sequence[Profile], schema: FlagSchema, flags: Sequence[Flag], rng: random.Random, count: int
) -> Iterator[dict[str, Any]]:
    for _ in range(count):
        profile = rng.choice(profiles)
        launch: dict[str, FlagValue] = {
            name: item.value
            for name, item in profile.flags.items()
            if name not in _LEFT_OUT and schema.find(name).flag is not None
        }
        note = _mutate(launch, flags, schema, rng)
        yield {"kind": "mutation", "flags": launch, "note": f"{profile.name}: {note}"}


def _mutate(launch: dict[str, FlagValue], flags: Sequence[Flag], schema: FlagSchema, rng: random.Random) -> str:
    """Change one thing of a launch in place; return what."""
    kind = rng.choice(("drop", "value", "odd", "add", "misspell") if launch else ("add",))
    name = rng.choice(sorted(launch)) if launch else ""
    known = schema.find(name).flag if name else None
    if kind == "drop":
        del launch[name]
        return f"without --{name}"
    if kind == "misspell":
        launch[name[:-1] + "x"] = launch.pop(name)
        return f"--{name} misspelt"
    if kind in ("value", "odd") and known is not None:
        launch[name] = rng.choice(_plausible_values(known) if kind == "value" else _odd_values(known))
        return f"--{name} {launch[name]}"
    added = rng.choice(flags)
    launch[_name(added)] = rng.choice(_plausible_values(added))
    return f"with --{_name(added)} {launch[_name(added)]}"


def _name(flag: Flag) -> str:
    return flag.names[0]


def _plausible_values(flag: Flag) -> tuple[FlagValue, ...]:
    if flag.is_switch:
        return (True,)
    if flag.choices:
        return tuple(str(choice) for choice in flag.choices)
    return _PLAUSIBLE.get(flag.type or "str", _PLAUSIBLE["str"])


def _odd_values(flag: Flag) -> tuple[FlagValue, ...]:
    return (True,) if flag.is_switch else _ODD.get(flag.type or "str", _ODD["str"])
