"""What is wrong with the patterns of entries: one that no log proves, or one that yields without need.

Every pattern with text must fire, as this very pattern, on a match log of its own entry; whatever a `yields-to` names
must exist, must not yield back, and must be met on a log. That a log gets the right answer is for `entry_faults`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from checks.catalog.entries import Entry, entry
from checks.catalog.yaml_reader import did_you_mean, read
from checks.during.diagnosis import judge_chunks
from checks.during.judgement import Judgement
from checks.during.matching import Hit
from checks.during.signature_index import Index


def patterns_fire(item: Entry, index: Index) -> Iterator[str]:
    """Each pattern that has `all` or `anywhere` fires on some match-*.log of its own entry."""
    fired = {
        hit.rule.number
        for path in _match_logs(item.folder)
        for hit in _judged(path, index).hits
        if hit.rule.entry == item.id
    }
    for number, pattern in enumerate(item.during):
        if (pattern.all or pattern.anywhere) and number not in fired:
            yield f"{pattern.where}: this pattern fires on no match-*.log of the entry; add a log that needs it"


def yields_with_reason(item: Entry, index: Index) -> Iterator[str]:
    """Each name in a `yields-to` is another entry with patterns, no circle leads back, and a log shows the two meet."""
    targets = _targets(index)
    for name in sorted(targets.get(item.id, ())):
        if name not in targets:
            hint = did_you_mean(name, targets)
            yield f"yields to `{name}`, which is not an entry with patterns" + (f"; {hint}" if hint else "")
        elif not _meet(item, name, index):
            yield f"yields to `{name}`, which it meets on no match-*.log of either; add such a log or leave it out"
    if circle := _circle(item.id, targets):
        yield f"yields in a circle: {' → '.join(circle)}"


def _targets(index: Index) -> dict[str, set[str]]:
    """Entry with patterns → the entries to which some pattern of it yields."""
    targets: dict[str, set[str]] = {}
    for rule in index.rules:
        targets.setdefault(rule.entry, set()).update(rule.yields_to)
    return targets


def _circle(start: str, targets: dict[str, set[str]]) -> list[str]:
    """The way from an entry back to itself; empty when there is none."""
    paths, seen = [[start]], {start}
    while paths:
        path = paths.pop(0)
        for name in sorted(targets.get(path[-1], ())):
            if name == start:
                return [*path, start]
            if name not in seen:
                seen.add(name)
                paths.append([*path, name])
    return []


def _meet(item: Entry, name: str, index: Index) -> bool:
    """Whether a hit that yields to the entry of that name is set aside for it on a match log of either."""
    shipped = entry(name)
    folders = {item.folder, *item.folder.parent.parent.glob(f"*/{name}"), *([shipped.folder] if shipped else [])}
    logs = (path for folder in sorted(folders) for path in _match_logs(folder))
    return any(_set_aside(item.id, name, _judged(path, index)) for path in logs)


def _set_aside(slug: str, name: str, judged: Judgement) -> bool:
    yielding = [hit for hit in judged.hits if hit.rule.entry == slug and name in hit.rule.yields_to]
    return any(_compared(one, other, judged) for one in yielding for other in judged.hits if other.rule.entry == name)


def _compared(one: Hit, other: Hit, judged: Judgement) -> bool:
    """Whether two hits are rivals: on the same incident, or one of them on a single line."""
    if one.incident == other.incident:
        return True
    on_incidents = one.incident >= 0 and other.incident >= 0
    return on_incidents and any(judged.reading.incidents[hit.incident].kind == "line" for hit in (one, other))


def _judged(path: Path, index: Index) -> Judgement:
    return judge_chunks([path.read_bytes() if path.suffix == ".log" else b""], index, facts_beside(path))


def _match_logs(folder: Path) -> list[Path]:
    """The match logs, and the facts that stand for a log of their own."""
    logs = sorted(folder.glob("match-*.log"))
    alone = [path for path in folder.glob("match-*.facts.yaml") if _log_of(path) not in logs]
    return [*logs, *sorted(alone)]


def _log_of(facts: Path) -> Path:
    return facts.with_name(facts.name.replace(".facts.yaml", ".log"))


def facts_beside(path: Path) -> dict[str, Any]:
    """What is known besides a log: `<log name>.facts.yaml`, or the facts themselves where there is no log."""
    beside = path.with_name(path.name.replace(".log", ".facts.yaml"))
    return dict(read(beside).plain()) if beside.exists() else {}
