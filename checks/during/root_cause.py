"""Hits on incidents → the one that names the cause, and what stays open. Not the words: those are `diagnosis_wording`.

Among hits on one failure, one that yields to another is set aside first; then the weight decides, then the root of the
chain of exceptions, then the detail. docs/knowledge.md has an example.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from checks.during.log.ending import INTERRUPTS, Ending
from checks.during.log.incidents import Incident
from checks.during.matching import Hit
from checks.vocabulary import Role, Weight

NEAR_LINES = 60
"""How far from a crash an ordinary line may stand to be taken for its cause."""


def choose(incidents: Sequence[Incident], hits: Iterable[Hit], ending: Ending) -> Hit | None:
    """The hit that names the cause: on the earliest incident, there the most decisive one. None to abstain.

    A line that is not a failure by itself names the cause of a crash only when the crash's own cause yields to it or
    weighs less, or when the crash has no cause and is near.
    """
    hits = list(hits)
    placed = [
        best
        for number, rivals in by_incident(hits).items()
        if number >= 0 and not _is_past(incidents[number], ending) and (best := decisive(rivals))
    ]
    crashes = [hit for hit in placed if incidents[hit.incident].kind != "line"]
    crash = _earliest(crashes, incidents)
    open_at = next((item.line for item in unexplained(incidents, hits, ending)), 0)
    lines = [hit for hit in placed if hit not in crashes and _weighs(hit, crash, incidents, open_at)]
    chosen = _earliest(not_yielding(lines), incidents) or crash
    return chosen or _observed([hit for hit in hits if hit.incident < 0 and hit.rule.role is Role.CAUSE])


def settled(hit: Hit, incidents: Sequence[Incident], ending: Ending) -> Hit:
    """What only fails a request, or nothing, is no cause once the engine went on."""
    if not hit.rule.fails or hit.incident < 0 or not ending.went_on(incidents[hit.incident]):
        return hit
    return replace(hit, rule=replace(hit.rule, role=Role.BENIGN))


def _earliest(hits: Sequence[Hit], incidents: Sequence[Incident]) -> Hit | None:
    """The earliest; a hint (a process was killed) only where nothing better is further down (who killed it)."""
    better = [hit for hit in hits if hit.rule.weight > Weight.HINT] or hits
    return min(better, key=lambda hit: _when(incidents[hit.incident]), default=None)


def _weighs(hit: Hit, crash: Hit | None, incidents: Sequence[Incident], open_at: int) -> bool:
    """Whether a cause seen on a single line stands against a crash that is explained, or is open, otherwise."""
    if crash:
        standing = not_yielding((hit, crash))
        return hit in standing and (crash not in standing or hit.rule.weight > crash.rule.weight)
    near = abs(open_at - incidents[hit.incident].line) <= NEAR_LINES
    return hit.rule.weight is Weight.DECISIVE or not open_at or near


def _is_past(incident: Incident, ending: Ending) -> bool:
    """Whether it only followed a request to stop, or a check of health that failed and then did not."""
    return ending.after_stop(incident) or (incident.kind == "line" and ending.overcome(incident))


def by_incident(hits: Iterable[Hit]) -> dict[int, list[Hit]]:
    """Index of an incident (-1 without one) → the hits on it."""
    found: dict[int, list[Hit]] = {}
    for hit in hits:
        found.setdefault(hit.incident, []).append(hit)
    return found


def not_yielding(rivals: Sequence[Hit]) -> list[Hit]:
    """The rivals without those that yield to an entry among them. One is always left, since lint refuses circles."""
    speaking = {hit.rule.entry for hit in rivals}
    return [hit for hit in rivals if speaking.isdisjoint(hit.rule.yields_to)]


def decisive(rivals: Sequence[Hit]) -> Hit | None:
    """The cause among the hits on one incident; None where it is benign, or a consequence that is known better."""
    standing = not_yielding(rivals)
    best = max((hit for hit in standing if hit.rule.role is Role.CAUSE), key=lambda hit: hit.decisiveness, default=None)
    if best is None:
        return None
    benign = max((hit.rule.weight for hit in standing if hit.rule.role is Role.BENIGN), default=0)
    symptom = max((hit.rule.weight for hit in standing if hit.rule.role is Role.SYMPTOM), default=0)
    return None if benign >= best.rule.weight or symptom > best.rule.weight else best


def _observed(hits: Sequence[Hit]) -> Hit | None:
    """Among causes that rest on facts alone: the heaviest, then most specific; two that are equal cancel out."""

    def rank(hit: Hit) -> tuple[int, int]:
        condition = hit.rule.condition
        return hit.rule.weight, len(condition.names) if condition else 0

    standing = not_yielding(hits)
    best = max(standing, key=rank, default=None)
    if best is None or any(rank(hit) == rank(best) and hit.rule.entry != best.rule.entry for hit in standing):
        return None
    return best


def _when(incident: Incident) -> tuple[str, int]:
    return incident.time.replace("T", " ").replace(",", "."), incident.line


def unexplained(incidents: Sequence[Incident], hits: Iterable[Hit], ending: Ending) -> Iterator[Incident]:
    """Incidents that would need an explanation and have none, earliest first."""
    explained = {hit.incident for hit in hits if hit.rule.role is not Role.LEDGER}
    for number, incident in sorted(enumerate(incidents), key=lambda item: _when(item[1])):
        interrupted = incident.last and incident.last.type.rsplit(".", 1)[-1] in INTERRUPTS
        if incident.kind == "line" or number in explained or interrupted or ending.after_stop(incident):
            continue
        if ending.overcome(incident):
            continue
        yield incident
