"""Make one Diagnosis of one log: read, judge, word, in this order. Pure: the launcher opens the files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from checks.during.diagnosis_wording import word
from checks.during.judgement import Judgement, judge
from checks.during.log.incidents import Incident
from checks.during.log.restarts import MOST_SHOWN
from checks.during.log.scan import scan
from checks.during.reading import Reading, read, starts_of
from checks.during.signature_index import Index
from checks.vocabulary import Diagnosis


def diagnose_chunks(
    chunks: Iterable[bytes], index: Index, known: Mapping[str, Any] | None = None, engine: str = ""
) -> Diagnosis:
    """Return the diagnosis of one log of any size; `known` and `engine` as in `reading.read`."""
    return diagnose(read(scan(chunks, index.words), index, known, engine))


def diagnose(reading: Reading) -> Diagnosis:
    """Return the diagnosis of a reading; of the last start if the log contains several."""
    return judged_and_worded(reading)[1]


def judged_and_worded(reading: Reading) -> tuple[Judgement, Diagnosis]:
    """Return the judgement on the last start of a reading, and the diagnosis that words it."""
    starts = starts_of(reading)
    judged = [judge(start) for start in starts[-1 - MOST_SHOWN :]]
    firsts = [start.scanned.lines[0].number for start in starts if len(starts) > 1]
    return judged[-1], word(judged[-1], firsts=firsts, before=judged[:-1])


def judge_chunks(chunks: Iterable[bytes], index: Index, known: Mapping[str, Any] | None = None) -> Judgement:
    """Return the judgement on the last start of one log, with every hit; `known` as in `reading.read`."""
    return judge(starts_of(read(scan(chunks, index.words), index, known))[-1])


def first_unexplained(reading: Reading) -> Incident | None:
    """Return the earliest unexplained failure of the last start; None if there is none, or if a cause explains it."""
    judged = judge(starts_of(reading)[-1])
    return None if judged.rivals else next(iter(judged.open), None)
