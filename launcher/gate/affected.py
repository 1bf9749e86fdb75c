"""Find the profiles that a change affects, and why: through a file, `extends`, a host, or the policy.

The two sides are compared by meaning, not by text. A profile whose files have equal bytes needs no comparison.
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
    """The working tree (`new`) and the base that it is compared with (`old`; None without a base)."""

    new: Side
    old: Side | None
    machines: Sequence[Machine]
    old_machines: Sequence[Machine]
    everything: str = ""  # why every profile counts as affected; empty if only some do


def affected(sides: Sides) -> list[Affected]:
    """Return every profile that has to be judged, sorted by name, deleted ones included.

    A profile whose text changed but not its meaning is left out.
    """
    old, files = sides.old, sides.new.profile_files
    deleted = {} if old is None else {name: old for name in old.profile_files if name not in files}
    moved = dict(_moved(sides, tuple(deleted)))
    profiles = [item for name in files if (item := _affected(name, sides, moved)) is not None]
    for name, side in deleted.items():
        if name not in moved.values():
            path = side.name_of(str(side.profile_files[name]))
            profiles.append(Affected(name=name, change="deleted", path=path, reasons=("deleted",)))
    return sorted(profiles, key=lambda item: item.name)


def means_all(policy: Policy, files: Sequence[str]) -> str:
    """Return the first changed file that affects every profile; empty if there is none."""
    return next((path for path in files if any(fnmatchcase(path, pattern) for pattern in policy.affects_all)), "")


def old_profile(name: str, sides: Sides) -> Profile | Broken | None:
    """Return the profile as it is on the base; None if the base does not have it."""
    return sides.old.profile(name) if sides.old is not None and name in sides.old.profile_files else None


def untouched(profile: Profile, sides: Sides) -> bool:
    """Return whether every file that a profile is read from has the same bytes on the base."""
    if sides.old is None or profile.name not in sides.old.profile_files:
        return False
    if not set(sides.old.profile_files) <= set(sides.new.profile_files):
        return False
    names = [sides.new.name_of(path) for path in profile.parents]
    return all(
        name.startswith("/") or ((data := sides.new.bytes_of(name)) is not None and data == sides.old.bytes_of(name))
        for name in names
    )


def _affected(name: str, sides: Sides, moved: Mapping[str, str]) -> Affected | None:
    path = sides.new.name_of(str(sides.new.profile_files[name]))
    profile = sides.new.profile(name)
    if isinstance(profile, Broken):
        return Affected(name=name, change="changed", path=path, reasons=("the profile cannot be read",))
    reasons = list(_inputs(profile, sides))
    if name in moved:
        reasons = [f"moved from {moved[name]}"]
        return Affected(name=name, change="moved", path=path, reasons=tuple(reasons), abstract=profile.abstract)
    changed = () if untouched(profile, sides) else _differences(profile, sides)
    if sides.old is None or name not in sides.old.profile_files:
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
    """The file that caused the change: the profile's own, or one that it extends."""
    path = sides.new.name_of(profile.path)
    assert sides.old is not None  # a changed profile exists on the base
    values = f"{len(changed)} value{'s' * (len(changed) != 1)}"
    if sides.new.bytes_of(path) != sides.old.bytes_of(path):
        return f"its file changed ({values})"
    parents = sorted({item.place.path for item in changed if item.place is not None and item.place.path != path})
    return f"through `extends`: {', '.join(parents) or 'a parent'} changed ({values})"


def _inputs(profile: Profile, sides: Sides) -> Iterator[str]:
    """The changed hosts that the profile runs on, one reason each."""
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


def _moved(sides: Sides, deleted: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(new name, old name) of each profile that was only renamed."""
    if sides.old is None or not deleted:
        return
    unmatched = {name: item for name in deleted if isinstance(item := sides.old.profile(name), Profile)}
    for name in sides.new.profile_files:
        profile = sides.new.profile(name)
        if name in sides.old.profile_files or not isinstance(profile, Profile):
            continue
        old_name = next((old for old, item in unmatched.items() if meaning(item) == meaning(profile)), None)
        if old_name is not None:
            del unmatched[old_name]
            yield name, old_name


def _schemas(policy: Policy) -> list[FlagSchema]:
    return [load(name) for name in available() if policy.engines.contains(name)]
