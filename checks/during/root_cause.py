"""Choose the hit that names the root cause, and list the failures that remain unexplained.

Among hits on one failure, those that yield to another hit drop out first; then the weight decides, then the distance
to the root of the exception chain, then the detail. docs/knowledge.md has an example.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from checks.during.log.ending import INTERRUPTS, Ending
from checks.during.log.incidents import Incident
from checks.during.matching import Hit
from checks.vocabulary import Role, Weight

NEAR_LINES = 60
"""Greatest distance in lines between a crash and an ordinary line that may be its cause."""


def choose(incidents: Sequence[Incident], hits: Iterable[Hit], ending: Ending) -> Hit | None:
    """Return the hit that names the cause: the most decisive hit on the earliest incident. None if none qualifies.

    A line that is not itself a failure names the cause of a crash only if the crash's own cause yields to it or has
    less weight, or if the crash is unexplained and near.
    """
    hits = list(hits)
    placed = [
        best
        for number, rivals in by_incident(hits).items()
        if number >= 0 and not _is_past(incidents[number], ending) and (best := decisive(rivals))
    ]
    crashes = [hit for hit in placed if incidents[hit.incident].kind not in ("line", "native")]
    crash = _earliest(crashes, incidents)
    open_at = next((item.line for item in unexplained(incidents, hits, ending)), 0)
    lines = [hit for hit in placed if hit not in crashes and _weighs(hit, crash, incidents, open_at)]
    chosen = _earliest(not_yielding(lines), incidents) or crash
    return chosen or _observed([hit for hit in hits if hit.incident < 0 and hit.rule.role is Role.CAUSE])


def settled(hit: Hit, incidents: Sequence[Incident], ending: Ending) -> Hit:
    """Return the hit as benign if its pattern fails a request or nothing at most, and the engine kept running."""
    if not hit.rule.fails or hit.incident < 0 or not ending.went_on(incidents[hit.incident]):
        return hit
    return replace(hit, rule=replace(hit.rule, role=Role.BENIGN))


def _earliest(hits: Sequence[Hit], incidents: Sequence[Incident]) -> Hit | None:
    """Return the earliest hit; a hint (a process was killed) only without a stronger hit later (what killed it)."""
    better = [hit for hit in hits if hit.rule.weight > Weight.HINT] or hits
    return min(better, key=lambda hit: _when(incidents[hit.incident]), default=None)


def _weighs(hit: Hit, crash: Hit | None, incidents: Sequence[Incident], open_at: int) -> bool:
    """Whether a cause on a single line outranks the cause of the crash, or can explain an unexplained crash."""
    if crash:
        remaining = not_yielding((hit, crash))
        return hit in remaining and (crash not in remaining or hit.rule.weight > crash.rule.weight)
    near = abs(open_at - incidents[hit.incident].line) <= NEAR_LINES
    return hit.rule.weight is Weight.DECISIVE or not open_at or near


def _is_past(incident: Incident, ending: Ending) -> bool:
    """Whether it only followed a request to stop, or is a failed health check that a later check passed again."""
    return ending.after_stop(incident) or (incident.kind in ("line", "native") and ending.overcome(incident))


def by_incident(hits: Iterable[Hit]) -> dict[int, list[Hit]]:
    """Return index of an incident (-1 without one) → the hits on it."""
    hits_by_incident: dict[int, list[Hit]] = {}
    for hit in hits:
        hits_by_incident.setdefault(hit.incident, []).append(hit)
    return hits_by_incident


def not_yielding(rivals: Sequence[Hit]) -> list[Hit]:
    """Return the rivals that yield to none of the others. At least one remains, since lint rejects circles."""
    entries = {hit.rule.entry for hit in rivals}
    return [hit for hit in rivals if entries.isdisjoint(hit.rule.yields_to)]


def decisive(rivals: Sequence[Hit]) -> Hit | None:
    """Return the cause among the hits on one incident; None if a benign sign or a symptom outranks it."""
    remaining = not_yielding(rivals)
    best = max(
        (hit for hit in remaining if hit.rule.role is Role.CAUSE), key=lambda hit: hit.decisiveness, default=None
    )
    if best is None:
        return None
    benign = max((hit.rule.weight for hit in remaining if hit.rule.role is Role.BENIGN), default=0)
    symptom = max((hit.rule.weight for hit in remaining if hit.rule.role is Role.SYMPTOM), default=0)
    return None if benign >= best.rule.weight or symptom > best.rule.weight else best


def _observed(hits: Sequence[Hit]) -> Hit | None:
    """Return the heaviest, then most specific cause by facts alone; None if two different causes rank equal."""

    def rank(hit: Hit) -> tuple[int, int]:
        condition = hit.rule.condition
        return hit.rule.weight, len(condition.names) if condition else 0

    remaining = not_yielding(hits)
    best = max(remaining, key=rank, default=None)
    if best is None or any(rank(hit) == rank(best) and hit.rule.entry != best.rule.entry for hit in remaining):
        return None
    return best


def _when(incident: Incident) -> tuple[str, int]:
    return incident.time.replace("T", " ").replace(",", "."), incident.line


def unexplained(incidents: Sequence[Incident], hits: Iterable[Hit], ending: Ending) -> Iterator[Incident]:
    """Return the failures without an explanation, earliest first."""
    explained = {hit.incident for hit in hits if hit.rule.role is not Role.LEDGER}
    for number, incident in sorted(enumerate(incidents), key=lambda item: _when(item[1])):
        interrupted = incident.last and incident.last.type.rsplit(".", 1)[-1] in INTERRUPTS
        if incident.kind == "line" or number in explained or interrupted or ending.after_stop(incident):
            continue
        if ending.overcome(incident):
            continue
        yield incident
