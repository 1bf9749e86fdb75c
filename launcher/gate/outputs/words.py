"""How the parts of a Report read as text; shared by the forms for people."""

from __future__ import annotations

from collections.abc import Sequence

from launcher.gate.report import Affected, Difference, Remark, Report, Status

SHOWN = (Status.FAIL, Status.INCONCLUSIVE, Status.ACCEPTED, Status.KNOWN, Status.NOTE, Status.EXPECTED)


def headline(report: Report) -> str:
    """One sentence: verdict, how much was judged, what stands in the way."""
    failing, open_ones = len(report.of(Status.FAIL)), len(report.of(Status.INCONCLUSIVE))
    if not report.affected and not report.remarks:
        return f"{report.verdict}: no profile is affected"
    parts = [f"{report.verdict}: {_count(len(report.affected), 'profile')} affected"]
    if report.targets:
        parts.append(f"{_count(report.targets, 'launch', 'launches')} judged")
    if failing:
        parts.append(f"{_count(failing, 'remark')} stand{'s' * (failing == 1)} in the way")
    if open_ones:
        parts.append(f"{open_ones} undecided")
    return ", ".join(parts)


def targets_text(targets: Sequence[str]) -> str:
    """`0.5.10 to 0.5.23 (18)`, with hosts behind it; empty for none."""
    hosts = [name for name in targets if " (" in name]
    releases = [name for name in targets if " (" not in name]
    parts = []
    if len(releases) > 2:
        parts.append(f"{releases[0]} … {releases[-1]} ({len(releases)} releases)")
    elif releases:
        parts.append(", ".join(releases))
    return ", ".join([*parts, *hosts])


def difference_text(item: Difference) -> str:
    """One value, old and new."""
    name = f"--{item.name}" if item.kind == "flag" else item.name
    kind = "" if item.kind in ("flag", "engine") else f"{item.kind} "
    if item.before is None:
        return f"+ {kind}{name}: {item.after}"
    if item.after is None:
        return f"- {kind}{name}: {item.before}"
    return f"~ {kind}{name}: {item.before} → {item.after}"


def affected_text(item: Affected) -> str:
    """A profile and why it is looked at."""
    return f"{item.name}: {'; '.join(item.reasons)}"


def remark_text(item: Remark) -> str:
    """A remark without its place."""
    where = targets_text(item.targets)
    return f"{item.rule}: {item.message}{f' [{where}]' if where else ''}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
