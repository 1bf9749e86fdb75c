"""Explain a log with the knowledge that ships, kept ready in the user's cache. No output here (see `cli`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from checks.during.diagnosis import diagnose, diagnose_chunks
from checks.during.log.scan import Scanned, joined, scan
from checks.during.reading import read
from checks.vocabulary import Diagnosis
from launcher import knowledge_cache


def diagnose_log(chunks: Iterable[bytes], known: Mapping[str, Any] | None = None, engine: str = "") -> Diagnosis:
    """The diagnosis of one log, see `checks.during.diagnosis`. Raises YamlError when the knowledge is malformed."""
    return diagnose_chunks(chunks, knowledge_cache.index(), known, engine)


def diagnose_scanned(kept: Scanned, rest: bytes, known: Mapping[str, Any] | None = None, engine: str = "") -> Diagnosis:
    """The same for a log whose host chose the lines that matter, and for what came `rest` besides."""
    index = knowledge_cache.index()
    return diagnose(read(joined(kept, scan([rest], index.words)), index, known, engine))
