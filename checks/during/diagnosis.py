"""One log → one Diagnosis: read, judge, word, in this order. Pure; opening files is the launcher's business."""

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
    """The diagnosis of one log of any size; `known` and `engine` as in `reading.read`."""
    return diagnose(read(scan(chunks, index.words), index, known, engine))


def diagnose(reading: Reading) -> Diagnosis:
    """The diagnosis of a log that was read; where it holds several starts, of the last one."""
    starts = starts_of(reading)
    judged = [judge(start) for start in starts[-1 - MOST_SHOWN :]]
    return word(
        judged[-1], firsts=[start.scanned.lines[0].number for start in starts if len(starts) > 1], before=judged[:-1]
    )


def judge_chunks(chunks: Iterable[bytes], index: Index, known: Mapping[str, Any] | None = None) -> Judgement:
    """The judgement on the last start of one log, with every hit; `known` as in `reading.read`."""
    return judge(starts_of(read(scan(chunks, index.words), index, known))[-1])


def first_open(reading: Reading) -> Incident | None:
    """The earliest failure of the last start that nothing explains; None when it is explained, or nothing failed."""
    judged = judge(starts_of(reading)[-1])
    return None if judged.rivals else next(iter(judged.open), None)
