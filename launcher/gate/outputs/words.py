"""The parts of a Report as text, shared by the formats that people read."""

from __future__ import annotations

from collections.abc import Sequence

from launcher.gate.report import Affected, Difference, Remark, Report, Status

SHOWN = (Status.FAIL, Status.INCONCLUSIVE, Status.ACCEPTED, Status.KNOWN, Status.NOTE, Status.EXPECTED)


def headline(report: Report) -> str:
    """Return one sentence: the verdict, how much was judged, and how many remarks block."""
    blocking, undecided = len(report.of(Status.FAIL)), len(report.of(Status.INCONCLUSIVE))
    if not report.affected and not report.remarks:
        return f"{report.verdict}: no profile is affected"
    parts = [f"{report.verdict}: {_count(len(report.affected), 'profile')} affected"]
    if report.targets:
        parts.append(f"{_count(report.targets, 'launch', 'launches')} judged")
    if blocking:
        parts.append(_count(blocking, "blocking remark"))
    if undecided:
        parts.append(f"{undecided} undecided")
    return ", ".join(parts)


def targets_text(targets: Sequence[str]) -> str:
    """Return the releases, such as `0.5.10 … 0.5.23 (18 releases)`, followed by the hosts; empty without targets."""
    hosts = [name for name in targets if " (" in name]
    releases = [name for name in targets if " (" not in name]
    parts = []
    if len(releases) > 2:
        parts.append(f"{releases[0]} … {releases[-1]} ({len(releases)} releases)")
    elif releases:
        parts.append(", ".join(releases))
    return ", ".join([*parts, *hosts])


def difference_text(item: Difference) -> str:
    """Return one value, old and new."""
    name = f"--{item.name}" if item.kind == "flag" else item.name
    kind = "" if item.kind in ("flag", "engine") else f"{item.kind} "
    if item.before is None:
        return f"+ {kind}{name}: {item.after}"
    if item.after is None:
        return f"- {kind}{name}: {item.before}"
    return f"~ {kind}{name}: {item.before} → {item.after}"


def affected_text(item: Affected) -> str:
    """Return a profile and the reasons for judging it."""
    return f"{item.name}: {'; '.join(item.reasons)}"


def remark_text(item: Remark) -> str:
    """Return a remark without its place."""
    where = targets_text(item.targets)
    return f"{item.rule}: {item.message}{f' [{where}]' if where else ''}"


def _count(number: int, singular: str, plural: str = "") -> str:
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
