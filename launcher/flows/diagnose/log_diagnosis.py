"""Diagnose a log with the shipped knowledge, which the user's cache keeps compiled. `cli` shows the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from checks.during.diagnosis import judged_and_worded
from checks.during.diagnosis_wording import narrowed_note
from checks.during.judgement import Judgement
from checks.during.log.scan import Scanned, joined, scan
from checks.during.reading import Reading, read
from checks.during.unexplained import WORDED_BY_PYTHON, engine_path
from checks.vocabulary import Diagnosis, Finding, LogVerdict, Suspect
from launcher import knowledge_cache

if TYPE_CHECKING:
    from checks.engine.release_lines import FramePlace

_MOST_FRAMES = 6  # of the failure that narrow the release down
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
    if reading.facts.get("engine.version"):
        return diagnose_reading(reading, findings)
    judged, worded = judged_and_worded(reading)
    if worded.verdict is not LogVerdict.UNKNOWN:
        return worded
    from checks.engine import release_lines  # reads every release: only for an unknown failure

    guess = release_lines.narrowed(
        release_lines.printed_lines(line.text for line in scanned.lines), _engine_frames(judged)
    )
    told = judged.at.telling if judged.at else None
    if guess is None and told and told.message and told.type not in ("", *WORDED_BY_PYTHON):
        guess = release_lines.with_message(told.paragraph, told.type.rsplit(".", 1)[-1])
    if guess is None:
        return diagnose_reading(reading, findings)
    diagnosis = diagnose_reading(read(scanned, index, known, guess.release), findings)
    if not guess.places:
        diagnosis = replace(diagnosis, suspects=tuple(map(_without_releases, diagnosis.suspects)))
    return replace(diagnosis, notes=(*diagnosis.notes, narrowed_note(guess)))


def _without_releases(suspect: Suspect) -> Suspect:
    """Return a suspect without experiments with another release: which release is at hand is not known."""
    kept = (step for step in suspect.experiments if "sglang" not in {**step.upgrade, **step.require})
    return replace(suspect, experiments=tuple(kept))


def _engine_frames(judged: Judgement) -> list[FramePlace]:
    """Return the innermost frames of the failure in the engine's code."""
    from checks.engine.release_lines import FramePlace

    frames = reversed(judged.at.frames) if judged.at else ()
    inside = ((engine_path(frame), frame) for frame in frames)
    return [FramePlace(path, frame.line, frame.function) for path, frame in inside if path][:_MOST_FRAMES]


def diagnose_reading(reading: Reading, findings: Findings = tuple) -> Diagnosis:
    """Return the diagnosis of a reading; an unknown failure is attributed to foreseen errors, or has suspects."""
    judged, diagnosis = judged_and_worded(reading)
    if diagnosis.verdict is not LogVerdict.UNKNOWN:
        return diagnosis
    from checks.suspects.attribution import attribute  # reads 0.6 MB of rows: only for an unknown failure

    return attribute(judged, diagnosis, knowledge_cache.rules(), findings())
