"""Second opinion on interleaved tracebacks: join those that overlap, and see whether the same cause is found.

Ranks write into one file without locking. `interleaving` guesses the traceback of a line that names no rank; a cause
that both the separated and the joined lines name does not depend on that guess (`judgement`).
"""

from __future__ import annotations

from collections.abc import Sequence

from checks.during.log.incidents import Incident, raised


def rejoined(incidents: Sequence[Incident]) -> tuple[Incident, ...]:
    """Return the incidents in order, with overlapping tracebacks joined into one where any of them is interleaved."""
    result: list[Incident] = []
    overlapping: list[Incident] = []
    for incident in incidents:
        if incident.kind != "traceback":
            result.append(incident)
            continue
        if overlapping and incident.line > max(item.lines[-1].number for item in overlapping):
            result += _joined(overlapping)
            overlapping = []
        overlapping.append(incident)
    result += _joined(overlapping)
    return tuple(sorted(result, key=lambda incident: incident.line))


def _joined(overlapping: Sequence[Incident]) -> Sequence[Incident]:
    if len(overlapping) < 2 or not any(item.interleaved for item in overlapping):
        return overlapping
    lines = tuple(sorted((line for item in overlapping for line in item.lines), key=lambda line: line.number))
    return [Incident(kind="traceback", lines=lines, chain=raised(lines), interleaved=True)]
