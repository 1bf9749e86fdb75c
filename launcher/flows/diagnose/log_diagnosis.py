"""Diagnose a log with the shipped knowledge, which the user's cache keeps compiled. `cli` shows the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from checks.during.diagnosis import diagnose, diagnose_chunks
from checks.during.log.scan import Scanned, joined, scan
from checks.during.reading import read
from checks.vocabulary import Diagnosis
from launcher import knowledge_cache


def diagnose_log(chunks: Iterable[bytes], known: Mapping[str, Any] | None = None, engine: str = "") -> Diagnosis:
    """Return the diagnosis of one log (see `checks.during.diagnosis`). Raises YamlError for malformed knowledge."""
    return diagnose_chunks(chunks, knowledge_cache.index(), known, engine)


def diagnose_scanned(
    scanned: Scanned, extra: bytes, known: Mapping[str, Any] | None = None, engine: str = ""
) -> Diagnosis:
    """Return the diagnosis of a log that was filtered on its host, followed by `extra`, such as its kernel log.

    Raises YamlError for malformed knowledge.
    """
    index = knowledge_cache.index()
    return diagnose(read(joined(scanned, scan([extra], index.words)), index, known, engine))
