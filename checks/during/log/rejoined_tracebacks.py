"""Tracebacks that had to be told apart by guess, put together again: the other way to read the same lines.

A cause that both readings name is sure enough. How lines are told apart is `untangle`; who is believed is `diagnosis`.
"""

from __future__ import annotations

from collections.abc import Sequence

from checks.during.log.incident_builder import INTERLEAVED
from checks.during.log.incidents import Incident, raised
from checks.during.log.lines import Line


def is_torn(incident: Incident) -> bool:
    """Whether an incident holds lines that were given to it by guess."""
    return INTERLEAVED in incident.notes


def rejoined(incidents: Sequence[Incident]) -> tuple[Incident, ...]:
    """The same lines with torn tracebacks that overlap as one incident each; the others unchanged, in order."""
    found: list[Incident] = []
    heap: list[Incident] = []
    for incident in incidents:
        if incident.kind != "traceback":
            found.append(incident)
            continue
        if heap and incident.line > max(_end(item) for item in heap):
            found.append(_one(heap))
            heap = []
        heap.append(incident)
    if heap:
        found.append(_one(heap))
    return tuple(sorted(found, key=lambda incident: incident.line))


def _end(incident: Incident) -> int:
    return incident.lines[-1].number


def _one(heap: Sequence[Incident]) -> Incident:
    if len(heap) == 1 or not any(is_torn(item) for item in heap):
        return heap[0]
    lines: tuple[Line, ...] = tuple(
        sorted((line for item in heap for line in item.lines), key=lambda line: line.number)
    )
    return Incident(kind="traceback", lines=lines, chain=raised(lines), notes=(INTERLEAVED,))
