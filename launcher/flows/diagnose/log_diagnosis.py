"""Diagnose a log with the shipped knowledge, which the user's cache keeps compiled. `cli` shows the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from checks.during.diagnosis import judged_and_worded
from checks.during.diagnosis_wording import narrowed_note
from checks.during.log.scan import Scanned, joined, scan
from checks.during.reading import Reading, read
from checks.vocabulary import Diagnosis, Finding, LogVerdict
from launcher import knowledge_cache

Findings: TypeAlias = Callable[[], Sequence[Finding]]


def diagnose_log(
    chunks: Iterable[bytes],
    known: Mapping[str, Any] | None = None,
    engine: str = "",
    findings: Findings = tuple,
) -> Diagnosis:
    """Return the diagnosis of one log (see `checks.during.diagnosis`). Raises YamlError for malformed knowledge.

    `findings` gives those of the launch itself, if they are known; without them the launch is checked again by the
    facts at hand. It is called for an unknown failure only.
    """
    return _diagnosed(scan(chunks, knowledge_cache.index().words), known, engine, findings)


def diagnose_scanned(
    scanned: Scanned,
    extra: bytes,
    known: Mapping[str, Any] | None = None,
    engine: str = "",
    findings: Findings = tuple,
) -> Diagnosis:
    """Return the diagnosis of a log that was filtered on its host, followed by `extra`, such as its kernel log.

    Raises YamlError for malformed knowledge.
    """
    both = joined(scanned, scan([extra], knowledge_cache.index().words))
    return _diagnosed(both, known, engine, findings)


def _diagnosed(scanned: Scanned, known: Mapping[str, Any] | None, engine: str, findings: Findings) -> Diagnosis:
    """Return the diagnosis; of an unknown failure without a release, by the release that its lines narrow down to."""
    index = knowledge_cache.index()
    reading = read(scanned, index, known, engine)
    if reading.facts.get("engine.version") or judged_and_worded(reading)[1].verdict is not LogVerdict.UNKNOWN:
        return diagnose_reading(reading, findings)
    from checks.engine.release_lines import narrowed, printed_lines  # reads every release: only for an unknown failure

    guess = narrowed(printed_lines(line.text for line in scanned.lines))
    if guess is None:
        return diagnose_reading(reading, findings)
    diagnosis = diagnose_reading(read(scanned, index, known, guess.release), findings)
    return replace(diagnosis, notes=(*diagnosis.notes, narrowed_note(guess)))


def diagnose_reading(reading: Reading, findings: Findings = tuple) -> Diagnosis:
    """Return the diagnosis of a reading; an unknown failure is attributed to foreseen errors, or has suspects."""
    judged, diagnosis = judged_and_worded(reading)
    if diagnosis.verdict is not LogVerdict.UNKNOWN:
        return diagnosis
    from checks.suspects.attribution import attribute  # reads 0.6 MB of rows: only for an unknown failure

    return attribute(judged, diagnosis, knowledge_cache.rules(), findings())
