"""236 planted failures on the real engine: the right cause, or the right setting as a suspect, and few wrong causes.

Each fault was chosen before any diagnosis was seen (tests/corpus/README.md). A named cause outside the accepted ones is
wrong, whatever the suspects are.
"""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from msgspec import Struct, json

from checks.before.rule_index import of_entries
from checks.during.diagnosis import judged_and_worded
from checks.during.log.scan import scan
from checks.during.reading import read
from checks.suspects.attribution import attribute
from checks.vocabulary import Diagnosis
from tests.support import shipped
from tests.support.paths import CORPUS

pytestmark = pytest.mark.slow
RIGHT_OR_FIRST, AMONG_THREE, WRONG = 0.92, 0.95, 0.02


class Planted(Struct, frozen=True, kw_only=True):
    """One planted failure: the launch, its log, and what explains it."""

    id: str
    engine: str
    flags: dict[str, Any]
    env: dict[str, str]
    gpu: dict[str, Any]
    model: dict[str, Any]
    fault: str
    causes: list[str]  # accepted causes; empty if no entry describes the fault
    settings: list[str]  # settings of which one is behind the failure
    log: str


def planted() -> list[Planted]:
    text = gzip.decompress((CORPUS / "planted.jsonl.gz").read_bytes())
    return [json.decode(line, type=Planted) for line in text.splitlines()]


def diagnosed(case: Planted) -> Diagnosis:
    known = {"flags": case.flags, "env": case.env, "gpu": case.gpu, "model": case.model}
    reading = read(scan([case.log.encode()], shipped.index().words), shipped.index(), known, case.engine)
    judged, diagnosis = judged_and_worded(reading)
    return attribute(judged, diagnosis, RULES)


RULES = of_entries()


def test_planted_failures_are_explained_or_attributed() -> None:
    cases = planted()
    results = {case.id: (case, diagnosed(case)) for case in cases}
    named = {name for name, (case, item) in results.items() if item.cause and item.cause.id in case.causes}
    wrong = {name for name, (case, item) in results.items() if item.cause and item.cause.id not in case.causes}
    places = {name: [suspect.setting for suspect in item.suspects] for name, (_, item) in results.items()}
    first = {name for name, found in places.items() if set(found[:1]) & set(results[name][0].settings)}
    three = {name for name, found in places.items() if set(found[:3]) & set(results[name][0].settings)}
    missed = sorted(results.keys() - named - first)
    assert len(cases) == 236
    assert len(wrong) <= WRONG * len(cases), sorted(wrong)
    assert len(named | first) >= RIGHT_OR_FIRST * len(cases), missed
    assert len(named | three) >= AMONG_THREE * len(cases), sorted(results.keys() - named - three)
