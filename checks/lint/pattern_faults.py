"""Find faults in the patterns of entries: a pattern that no log proves, or a `yields-to` without need.

Every pattern with text must itself fire on a match log of its entry; every entry named by a `yields-to` must exist,
must not yield back, and must compete with this entry on a log. `entry_faults` checks the diagnosis of each log.
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
    """Check that each pattern with `all` or `anywhere` fires on a match-*.log of its own entry."""
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
    """Check that each `yields-to` names another entry with patterns, forms no cycle, and is needed on some log."""
    targets = _targets(index)
    for name in sorted(targets.get(item.id, ())):
        if name not in targets:
            hint = did_you_mean(name, targets)
            yield f"yields to `{name}`, which is not an entry with patterns" + (f"; {hint}" if hint else "")
        elif not _meet(item, name, index):
            yield f"yields to `{name}`, but no match-*.log of either needs that; add such a log or remove the name"
    if cycle := _cycle(item.id, targets):
        yield f"yields in a cycle: {' → '.join(cycle)}"


def _targets(index: Index) -> dict[str, set[str]]:
    """Return a mapping from each entry with patterns to the entries to which its patterns yield."""
    targets: dict[str, set[str]] = {}
    for rule in index.rules:
        targets.setdefault(rule.entry, set()).update(rule.yields_to)
    return targets


def _cycle(start: str, targets: dict[str, set[str]]) -> list[str]:
    """Return the path from an entry back to itself; empty without a cycle."""
    paths, visited = [[start]], {start}
    while paths:
        path = paths.pop(0)
        for name in sorted(targets.get(path[-1], ())):
            if name == start:
                return [*path, start]
            if name not in visited:
                visited.add(name)
                paths.append([*path, name])
    return []


def _meet(item: Entry, name: str, index: Index) -> bool:
    """Return whether, on a match log of either entry, a hit of this entry is set aside for entry `name`."""
    shipped = entry(name)
    folders = {item.folder, *item.folder.parent.parent.glob(f"*/{name}"), *([shipped.folder] if shipped else [])}
    logs = (path for folder in sorted(folders) for path in _match_logs(folder))
    return any(_set_aside(item.id, name, _judged(path, index)) for path in logs)


def _set_aside(slug: str, name: str, judged: Judgement) -> bool:
    yielding = [hit for hit in judged.hits if hit.rule.entry == slug and name in hit.rule.yields_to]
    return any(_compete(hit, rival, judged) for hit in yielding for rival in judged.hits if rival.rule.entry == name)


def _compete(hit: Hit, rival: Hit, judged: Judgement) -> bool:
    """Return whether two hits compete: on the same incident, or one of them on a single line."""
    if hit.incident == rival.incident:
        return True
    on_incidents = hit.incident >= 0 and rival.incident >= 0
    return on_incidents and any(judged.reading.incidents[item.incident].kind == "line" for item in (hit, rival))


def _judged(path: Path, index: Index) -> Judgement:
    return judge_chunks([path.read_bytes() if path.suffix == ".log" else b""], index, facts_beside(path))


def _match_logs(folder: Path) -> list[Path]:
    """Return the match logs, and the facts files that have no log and stand for one."""
    logs = sorted(folder.glob("match-*.log"))
    without_log = [path for path in folder.glob("match-*.facts.yaml") if _log_of(path) not in logs]
    return [*logs, *sorted(without_log)]


def _log_of(facts: Path) -> Path:
    return facts.with_name(facts.name.replace(".facts.yaml", ".log"))


def facts_beside(path: Path) -> dict[str, Any]:
    """Return the facts that accompany a log, from `<log name>.facts.yaml`; `path` may be the facts file itself."""
    facts = path.with_name(path.name.replace(".log", ".facts.yaml"))
    return dict(read(facts).plain()) if facts.exists() else {}
