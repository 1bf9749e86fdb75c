"""The twin tier: what the argument code of each fetched release says about each affected profile on each recorded host.

One process per release answers for all profiles and hosts. A release that was not fetched is noted, not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from checks.vocabulary import Finding, Severity
from launcher.errors import LauncherError
from launcher.flows.launch.twin_check import Asked, available, twin_check
from launcher.gate.affected import Sides, old_profile
from launcher.gate.policy import Policy
from launcher.gate.report import Affected, Place, Remark, Status
from launcher.gate.semantic import planned
from launcher.gate.side import Broken, Machine
from launcher.gate.static import facts_for, releases, runs_on
from launcher.plan.launch_facts import to_launch
from launcher.profile.file import Profile
from launcher.transport.base import Transport

Found = Mapping[str, tuple[tuple[str, Finding], ...]]
"""Name of a profile → (target, finding)."""


class TwinTier(Struct, frozen=True, kw_only=True):
    """The findings of the twin on both sides of a change, and the releases that could not be asked."""

    new: Found = field(default_factory=dict)
    old: Found = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    asked: int = 0


def twin_tier(transport: Transport, sides: Sides, affected: Sequence[Affected]) -> TwinTier:
    """Ask the twin about the affected profiles, as they are and as they were. Raises HostCommandFailed."""
    launches: dict[str, list[tuple[str, str, Asked]]] = {}
    for side, name, release, asked in _launches(sides, affected):
        launches.setdefault(release, []).append((side, name, asked))
    found: dict[str, dict[str, list[tuple[str, Finding]]]] = {"new": {}, "old": {}}
    for release in filter(available, launches):
        answers = twin_check(transport, release, [asked for _, _, asked in launches[release]])
        for side, name, asked in launches[release]:
            label = asked.name.partition(":")[2]
            found[side].setdefault(name, []).extend((label, item) for item in answers[asked.name])
    ended = {side: {name: tuple(items) for name, items in by_name.items()} for side, by_name in found.items()}
    there = [release for release in launches if available(release)]
    return TwinTier(
        new=ended["new"],
        old=ended["old"],
        absent=tuple(release for release in launches if release not in there),
        asked=sum(len(launches[release]) for release in there),
    )


def twin_remarks(tier: TwinTier, place: Place) -> Iterator[Remark]:
    """Yield a note on the releases that were not asked."""
    if tier.absent:
        yield Remark(
            rule="twin-not-fetched",
            status=Status.NOTE,
            severity=Severity.INFO,
            message=f"the argument code of {', '.join(tier.absent)} was not asked, because it is not on this machine",
            place=place,
            remedies=tuple(f"launch engines fetch {release}" for release in tier.absent),
        )


def _launches(sides: Sides, affected: Sequence[Affected]) -> Iterator[tuple[str, str, str, Asked]]:
    policy = sides.new.policy
    for item in affected:
        if item.change != "deleted":
            now, before = sides.new.profile(item.name), old_profile(item.name, sides)
            for side, profile, machines in (("new", now, sides.machines), ("old", before, sides.old_machines)):
                if profile is None or isinstance(profile, Broken) or profile.abstract:
                    continue
                for release, asked in _of_profile(f"{side} {item.name}", profile, machines, policy):
                    yield side, item.name, release, asked


def _of_profile(
    name: str, profile: Profile, machines: Sequence[Machine], policy: Policy
) -> Iterator[tuple[str, Asked]]:
    for machine in machines:
        if not machine.raw or not runs_on(profile, machine, policy):
            continue
        for schema in releases(profile, policy):
            try:
                plan = planned(profile, schema, machine.env)
            except LauncherError:
                continue  # the static tier reports it
            raw = facts_for(machine, plan)
            launch = to_launch(raw, plan.flags, plan.env)
            asked = Asked(
                name=f"{name}:{machine.name} ({schema.version}, twin)", launch=launch, flags=plan.flags, raw=raw
            )
            yield schema.version, asked
