"""Diagnose a log with the shipped knowledge, which the user's cache keeps compiled. `cli` shows the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from checks.during.diagnosis import judged_and_worded
from checks.during.log.scan import Scanned, joined, scan
from checks.during.reading import Reading, read
from checks.vocabulary import Diagnosis, Finding, LogVerdict
from launcher import knowledge_cache


def diagnose_log(
    chunks: Iterable[bytes],
    known: Mapping[str, Any] | None = None,
    engine: str = "",
    findings: Sequence[Finding] = (),
) -> Diagnosis:
    """Return the diagnosis of one log (see `checks.during.diagnosis`). Raises YamlError for malformed knowledge.

    `findings` are those of the launch itself, if they are known; without them the launch is checked again by the facts
    at hand.
    """
    index = knowledge_cache.index()
    return diagnose_reading(read(scan(chunks, index.words), index, known, engine), findings)


def diagnose_scanned(
    scanned: Scanned,
    extra: bytes,
    known: Mapping[str, Any] | None = None,
    engine: str = "",
    findings: Sequence[Finding] = (),
) -> Diagnosis:
    """Return the diagnosis of a log that was filtered on its host, followed by `extra`, such as its kernel log.

    Raises YamlError for malformed knowledge.
    """
    index = knowledge_cache.index()
    return diagnose_reading(read(joined(scanned, scan([extra], index.words)), index, known, engine), findings)


def diagnose_reading(reading: Reading, findings: Sequence[Finding] = ()) -> Diagnosis:
    """Return the diagnosis of a reading; an unknown failure is attributed to foreseen errors, or has suspects."""
    judged, diagnosis = judged_and_worded(reading)
    if diagnosis.verdict is not LogVerdict.UNKNOWN:
        return diagnosis
    from checks.suspects.attribution import attribute  # reads 0.6 MB of rows: only for an unknown failure

    return attribute(judged, diagnosis, knowledge_cache.rules(), findings)
