"""The JSON document: a report with its verdict as plain values that other programs read."""

from __future__ import annotations

import json

import pytest
from msgspec import convert

from launcher.gate.outputs.document import document
from launcher.gate.report import Comparison, Report, Status, Trial
from tests.support.gate_fixtures import remark, report

COMPARISON = Comparison(name="speed decode", verdict="worse", message="-20%", figures={"change": -0.2})
TRIAL = Trial(profile="a", host="gpu-box", verdict="worse", message="1 worse", comparisons=(COMPARISON,))


@pytest.mark.parametrize(
    ("statuses", "verdict"),
    [((), "pass"), ((Status.KNOWN,), "pass"), ((Status.INCONCLUSIVE, Status.FAIL), "fail")],
)
def test_the_document_states_the_verdict_that_follows_from_its_remarks(
    statuses: tuple[Status, ...], verdict: str
) -> None:
    assert json.loads(json.dumps(document(report(*map(remark, statuses)))))["verdict"] == verdict


def test_nothing_of_a_report_is_lost_in_the_document() -> None:
    whole = report(*(remark(status) for status in Status), trials=(TRIAL,), files=("profiles/a.yaml",), targets=3)
    text = json.dumps(document(whole))
    assert convert(json.loads(text), Report) == whole
