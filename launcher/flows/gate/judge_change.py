"""Gate a change: find its base and the affected profiles, check them, judge recorded runs again, make one Report.

It prints nothing and changes nothing in the repository. `launcher.flows.gate.host_tier` is the tier that launches.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from checks.catalog.yaml_reader import YamlError, read
from checks.vocabulary import Severity
from launcher.clock import Clock
from launcher.errors import LauncherError, UsageError
from launcher.flows.gate.replay_tier import replay_remarks, replay_tier
from launcher.flows.gate.twin_tier import TwinTier, twin_remarks, twin_tier
from launcher.gate.affected import Sides, affected, means_all, old_profile
from launcher.gate.git_history import Base, Git, changed_files, find_base, repository, write_snapshot
from launcher.gate.judge import Case, judge, known_findings, own_rules
from launcher.gate.policy import FILE, Policy, fits, load
from launcher.gate.policy_baselines import baseline_remarks
from launcher.gate.report import Affected, Place, Remark, Report, Status
from launcher.gate.rulebook import Rulebook
from launcher.gate.side import Broken, Side
from launcher.gate.static import check_profile, with_findings
from launcher.knowledge_cache import rules
from launcher.profile.file import Profile
from launcher.transport.base import Transport
from launcher.transport.hosts_file import HostsFile

TIERS = ("static", "replay", "twin", "host")


class Request(Struct, frozen=True, kw_only=True):
    """The options of a gate, from the command line."""

    root: Path  # the folder of gate.yaml, even if that file does not exist
    base: str = ""
    tier: str = "static"
    everything: bool = False
    only: tuple[str, ...] = ()  # patterns of profile names


class Opened(Struct, frozen=True, kw_only=True):
    """Both sides of a change. It is valid only while the snapshot of the base exists."""

    sides: Sides
    base: Base
    files: tuple[str, ...]
    remarks: tuple[Remark, ...]


def gate(request: Request, transport: Transport, clock: Clock, environ: Mapping[str, str]) -> Report:
    """Judge a change up to the twin tier. Raises UsageError, and YamlError for a faulty gate.yaml."""
    with tempfile.TemporaryDirectory(prefix="gate-") as scratch:
        return judge_change(request, open_sides(request, transport, environ, Path(scratch)), clock, transport)


def open_sides(request: Request, transport: Transport, environ: Mapping[str, str], scratch: Path) -> Opened:
    """Open the working tree and its base; a snapshot of the base is written into `scratch`."""
    root = request.root.resolve()
    git = repository(transport, root)
    prefix = "" if root == git.top else f"{root.relative_to(git.top).as_posix()}/"
    policy = load(root / FILE, f"{prefix}{FILE}")
    base = find_base(git, request.base, environ)
    files = changed_files(git, base)
    new = Side(root, policy, prefix)
    old, remarks = _base_side(git, base, policy, scratch, prefix)
    machines, broken = new.machines()
    for item in broken:
        remarks.append(_broken(item, ""))
    policy_differs = _policy_differs(new, old)
    if policy_differs:
        remarks.append(_policy_changed(prefix))
    sides = Sides(
        new=new,
        old=old,
        machines=machines,
        old_machines=old.machines()[0] if old is not None else (),
        everything=_everything(request.everything, means_all(policy, files), policy_differs),
    )
    return Opened(sides=sides, base=base, files=_relevant(files, policy, prefix), remarks=tuple(remarks))


def judge_change(request: Request, opened: Opened, clock: Clock, transport: Transport) -> Report:
    """Judge both sides up to the twin tier and return the Report."""
    began, today = clock.monotonic(), clock.now().date()
    sides, policy = opened.sides, opened.sides.new.policy
    profiles = [item for item in affected(sides) if not request.only or fits(item.name, request.only)]
    count_old = not (request.everything or means_all(policy, opened.files))
    remarks, targets, checked = list(opened.remarks), 0, 0
    book = Rulebook(rules())
    twin = twin_tier(transport, sides, profiles) if TIERS.index(request.tier) >= TIERS.index("twin") else TwinTier()
    remarks += twin_remarks(twin, sides.new.place(FILE))
    for item in profiles:
        if item.change != "deleted":
            on_profile, launches = _judge_profile(item, sides, book, twin, today, count_old)
            remarks, targets, checked = [*remarks, *on_profile], targets + launches, checked + 1
    remarks += baseline_remarks(sides.new, [item.name for item in profiles])
    replayed = replay_tier(sides.new, profiles, everything=bool(sides.everything)) if request.tier != "static" else ()
    remarks += replay_remarks(replayed, sides.new)
    return Report(
        tier=request.tier,
        base=opened.base.commit,
        base_note=opened.base.note,
        affected=tuple(profiles),
        remarks=tuple(_merged(remarks)),
        files=opened.files,
        replayed=replayed,
        checked=checked,
        targets=targets,
        seconds=round(clock.monotonic() - began, 3),
    )


def _judge_profile(
    item: Affected, sides: Sides, book: Rulebook, twin: TwinTier, today: date, count_old: bool
) -> tuple[list[Remark], int]:
    """The remarks on one profile, and the number of launches that were judged for it."""
    profile, policy = sides.new.profile(item.name), sides.new.policy
    before = old_profile(item.name, sides)
    if isinstance(profile, Broken):
        same = isinstance(before, Broken) and before.message == profile.message
        return [_broken(profile, item.name, Status.KNOWN if same and not policy.old_fails else Status.FAIL)], 0
    old = before if isinstance(before, Profile) and count_old else None
    if profile.abstract:
        return _ratcheted(own_secrets(profile, sides.new), None, sides), 0
    now = with_findings(check_profile(profile, sides.machines, policy, book), twin.new.get(item.name, ()))
    remarks = judge(Case(profile=profile, now=now), policy, sides.new, today)
    if old is not None and not old.abstract and any(item.status is Status.FAIL for item in remarks):
        was = check_profile(old, sides.old_machines, policy, book)
        known = known_findings(with_findings(was, twin.old.get(item.name, ())))
        remarks = judge(Case(profile=profile, now=now, before=known), policy, sides.new, today)
    if not now.targets and not now.refused:
        remarks.append(_no_release(profile, sides.new))
    return [*remarks, *_ratcheted(own_rules(profile, policy, sides.new), old, sides)], len(now.targets)


def own_secrets(profile: Profile, side: Side) -> list[Remark]:
    """Return the remarks on secrets in an abstract profile. Everything else in it is judged with its children."""
    return [item for item in own_rules(profile, Policy(), side) if item.rule == "secret-in-profile"]


def _ratcheted(remarks: list[Remark], old: Profile | None, sides: Sides) -> list[Remark]:
    """Turn remarks that the profile had before into known ones: they are reported, and do not block the change."""
    if old is None or sides.old is None or sides.new.policy.old_fails:
        return remarks
    before = {(item.rule, item.message) for item in own_rules(old, sides.new.policy, sides.old)}
    return [
        replace(item, status=Status.KNOWN)
        if (item.rule, item.message) in before and item.rule != "secret-in-profile"
        else item
        for item in remarks
    ]


def _base_side(git: Git, base: Base, policy: Policy, scratch: Path, prefix: str) -> tuple[Side | None, list[Remark]]:
    if not base.commit:
        return None, []
    write_snapshot(git, base.commit, [f"{prefix}{FILE}"], scratch)
    root = scratch / prefix if prefix else scratch
    remarks = []
    try:
        old = load(root / FILE)
    except YamlError as error:
        old = policy
        message = f"cannot read gate.yaml of the base ({error.message}): the new one was used for both sides"
        remarks.append(
            Remark(rule="gate-policy-changed", status=Status.NOTE, severity=Severity.WARNING, message=message,
                   place=Place(path=f"{prefix}{FILE}"))
        )  # fmt: skip
    under = [f"{prefix}{name}".rstrip("/") for name in (*old.profiles, old.hosts, old.facts)]
    write_snapshot(git, base.commit, under, scratch)
    _outside_facts(git, base, root, old, prefix, scratch)
    return Side(root, old, prefix), remarks


def _outside_facts(git: Git, base: Base, root: Path, policy: Policy, prefix: str, scratch: Path) -> None:
    """Add the facts files that hosts.yaml names in other folders to the snapshot."""
    files: list[str] = []
    with suppress(LauncherError):
        hosts = HostsFile(root / policy.hosts)
        for name in hosts.names:
            with suppress(LauncherError):  # reported for the new side; other entries are still read
                entry = hosts.entry(name)
                files += [str(entry.facts)] if entry is not None and entry.facts is not None else []
    write_snapshot(git, base.commit, [f"{prefix}{name.removeprefix('./')}" for name in files], scratch)


def _everything(requested: bool, changed_file: str, policy_differs: bool) -> str:
    """Why every profile is judged; empty if only the affected ones are."""
    if requested:
        return "requested by --all"
    return f"{changed_file} changed" if changed_file else "the policy changed" if policy_differs else ""


def _policy_differs(new: Side, old: Side | None) -> bool:
    if old is None:
        return False

    def content(side: Side) -> object:
        path = side.root / FILE
        try:
            return read(path).plain() if path.exists() else {}
        except YamlError:
            return None

    return content(new) != content(old)


def _policy_changed(prefix: str) -> Remark:
    return Remark(
        rule="gate-policy-changed",
        status=Status.NOTE,
        severity=Severity.WARNING,
        message="this change also changes the policy of the gate: its owner should review it",
        place=Place(path=f"{prefix}{FILE}"),
    )


def _broken(item: Broken, profile: str, status: Status = Status.FAIL) -> Remark:
    return Remark(
        rule="file-unreadable", status=status, severity=Severity.ERROR, message=item.message, place=item.place,
        profile=profile, remedies=(item.hint,) if item.hint else (),
    )  # fmt: skip


def _no_release(profile: Profile, side: Side) -> Remark:
    return Remark(
        rule="range-without-known-release",
        status=Status.INCONCLUSIVE,
        severity=Severity.WARNING,
        message=f"no known release matches `engine: {profile.engine.text}`: the profile was not checked",
        place=side.place(profile.path),
        profile=profile.name,
    )


def _relevant(files: tuple[str, ...], policy: Policy, prefix: str) -> tuple[str, ...]:
    """The changed files that the gate reads."""
    folders = tuple(f"{prefix}{name.rstrip('/')}/" for name in (*policy.profiles, policy.facts))
    single = {f"{prefix}{name}" for name in (policy.hosts, FILE)}
    return tuple(path for path in files if path in single or path.startswith(folders) or means_all(policy, (path,)))


def _merged(remarks: list[Remark]) -> list[Remark]:
    """One remark for equal remarks on the same line: a broken parent breaks every child."""
    unique: dict[tuple[str, str, str], Remark] = {}
    for item in remarks:
        key = (item.rule, str(item.place), item.message)
        if key not in unique:
            unique[key] = item
        elif item.profile and item.profile not in unique[key].profile.split(", "):
            unique[key] = replace(unique[key], profile=f"{unique[key].profile}, {item.profile}")
    order = list(Status)
    return sorted(unique.values(), key=lambda item: (order.index(item.status), item.place.path, item.place.line))


def check_tier(tier: str) -> str:
    """Return the tier if it exists. Raises UsageError."""
    if tier not in TIERS:
        raise UsageError(f"unknown tier `{tier}`", hint=f"use one of: {', '.join(TIERS)}")
    return tier
