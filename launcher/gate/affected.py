"""Which profiles a change reaches, and why: through a file, through `extends`, through a host, through the policy.

Two sides are compared by what they mean, not by their text. Where bytes are equal nothing is resolved twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from checks.engine.flag_schema import FlagSchema, available, load
from launcher.gate.policy import Policy
from launcher.gate.report import Affected, Difference
from launcher.gate.semantic import differences, effects, meaning
from launcher.gate.side import Broken, Machine, Side
from launcher.gate.static import runs_on
from launcher.profile.file import Profile


class Sides(Struct, frozen=True, kw_only=True):
    """The working tree and what it is compared with; `old` is None when there is no base."""

    new: Side
    old: Side | None
    machines: Sequence[Machine]
    old_machines: Sequence[Machine]
    everything: str = ""  # why every profile is affected; empty: only those that a change reaches


def affected(sides: Sides) -> list[Affected]:
    """Every profile that has to be judged, by name; those that only changed their text are not among them."""
    gone = {} if sides.old is None else {name: sides.old for name in sides.old.own if name not in sides.new.own}
    moved = dict(_moved(sides, tuple(gone)))
    found = [item for name in sides.new.own if (item := _one(name, sides, moved)) is not None]
    for name, side in gone.items():
        if name not in moved.values():
            path = side.name_of(str(side.own[name]))
            found.append(Affected(name=name, change="deleted", path=path, reasons=("deleted",)))
    return sorted(found, key=lambda item: item.name)


def means_all(policy: Policy, files: Sequence[str]) -> str:
    """The changed file that reaches every profile; empty when there is none."""
    return next((path for path in files if any(fnmatchcase(path, pattern) for pattern in policy.affects_all)), "")


def old_profile(name: str, sides: Sides) -> Profile | Broken | None:
    """The profile as it was on the base."""
    return sides.old.profile(name) if sides.old is not None and name in sides.old.own else None


def untouched(profile: Profile, sides: Sides) -> bool:
    """Whether every file that a profile is read from is the same on the base, byte for byte."""
    if sides.old is None or profile.name not in sides.old.own or not set(sides.old.own) <= set(sides.new.own):
        return False
    names = [sides.new.name_of(path) for path in profile.parents]
    return all(
        name.startswith("/") or ((data := sides.new.bytes_of(name)) is not None and data == sides.old.bytes_of(name))
        for name in names
    )


def _one(name: str, sides: Sides, moved: Mapping[str, str]) -> Affected | None:
    path = sides.new.name_of(str(sides.new.own[name]))
    profile = sides.new.profile(name)
    if isinstance(profile, Broken):
        return Affected(name=name, change="changed", path=path, reasons=("it cannot be read",))
    reasons = list(_inputs(profile, sides))
    if name in moved:
        reasons = [f"moved from {moved[name]}"]
        return Affected(name=name, change="moved", path=path, reasons=tuple(reasons), abstract=profile.abstract)
    changed = () if untouched(profile, sides) else _differences(profile, sides)
    if sides.old is None or name not in sides.old.own:
        reasons.insert(0, "new")
        change = "new"
    elif changed:
        reasons.insert(0, _because(profile, changed, sides))
        change = "changed"
    elif reasons or sides.everything:
        reasons = reasons or [sides.everything]
        change = "inputs"
    else:
        return None
    before = old_profile(name, sides)
    old = before if isinstance(before, Profile) else None
    rows = () if profile.abstract or not changed else effects(old, profile, _schemas(sides.new.policy))
    return Affected(
        name=name, change=change, path=path, reasons=tuple(reasons), differences=changed, effects=rows,
        abstract=profile.abstract,
    )  # fmt: skip


def _differences(profile: Profile, sides: Sides) -> tuple[Difference, ...]:
    before = old_profile(profile.name, sides)
    return differences(before if isinstance(before, Profile) else None, profile, sides.new)


def _because(profile: Profile, changed: Sequence[Difference], sides: Sides) -> str:
    """Which file brought the change: its own, or one that it extends."""
    own = sides.new.name_of(profile.path)
    assert sides.old is not None  # a profile that changed was there before
    if sides.new.bytes_of(own) != sides.old.bytes_of(own):
        return f"its file changed ({len(changed)} values)"
    elsewhere = sorted({item.place.path for item in changed if item.place is not None and item.place.path != own})
    return f"through `extends`: {', '.join(elsewhere) or 'a parent'} changed ({len(changed)} values)"


def _inputs(profile: Profile, sides: Sides) -> Iterator[str]:
    """Hosts that changed under the profile."""
    if profile.abstract or sides.old is None:
        return
    before = {item.name: item for item in sides.old_machines}
    for machine in sides.machines:
        if not runs_on(profile, machine, sides.new.policy):
            continue
        old = before.get(machine.name)
        if old is None:
            yield f"host {machine.name} is new"
        elif old.engine != machine.engine:
            yield f"host {machine.name}: engine {old.engine or 'unknown'} → {machine.engine or 'unknown'}"
        elif old.lasting != machine.lasting:
            yield f"the recorded facts of {machine.name} changed"
        elif old.env != machine.env:
            yield f"the environment of {machine.name} changed"


def _moved(sides: Sides, gone: Sequence[str]) -> Iterator[tuple[str, str]]:
    """New name → old name of profiles that only got another one."""
    if sides.old is None or not gone:
        return
    left = {name: item for name in gone if isinstance(item := sides.old.profile(name), Profile)}
    for name in sides.new.own:
        profile = sides.new.profile(name)
        if name in sides.old.own or not isinstance(profile, Profile):
            continue
        same = next((old for old, item in left.items() if meaning(item) == meaning(profile)), None)
        if same is not None:
            del left[same]
            yield name, same


def _schemas(policy: Policy) -> list[FlagSchema]:
    return [load(name) for name in available() if policy.engines.contains(name)]
