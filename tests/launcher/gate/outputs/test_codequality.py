"""GitLab code quality: one issue per open remark, on its line, each with a fingerprint of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checks.vocabulary import Severity
from launcher.gate.outputs.codequality import codequality
from launcher.gate.outputs.sarif import fingerprint
from launcher.gate.report import Remark, Status
from tests.support.gate_fixtures import remark, report


def issues(*remarks: Remark) -> list[dict[str, Any]]:
    return list(json.loads(codequality(report(*remarks))))


def test_issues_have_unique_fingerprints_and_a_line() -> None:
    rows = issues(remark(), remark(), remark(), remark(Status.ACCEPTED))
    assert [item["severity"] for item in rows] == ["blocker"] * 3
    assert len({item["fingerprint"] for item in rows}) == 3
    assert rows[0]["location"] == {"path": "profiles/a.yaml", "lines": {"begin": 5}}


def test_the_first_of_equal_issues_keeps_the_fingerprint_that_code_scanning_uses() -> None:
    rows = issues(remark(subject="flag.y"), remark(), remark())
    assert [item["fingerprint"] == fingerprint(remark()) for item in rows] == [False, True, False]


@pytest.mark.parametrize(
    ("severity", "level"), [(Severity.ERROR, "major"), (Severity.WARNING, "minor"), (Severity.INFO, "info")]
)
def test_only_what_blocks_the_gate_is_a_blocker(severity: Severity, level: str) -> None:
    [blocking, known] = issues(remark(severity=severity), remark(Status.KNOWN, severity=severity))
    assert (blocking["severity"], known["severity"]) == ("blocker", level)


def test_accepted_and_expected_remarks_are_not_issues() -> None:
    assert len(issues(*(remark(status) for status in Status))) == 4


def test_a_report_without_remarks_is_an_empty_list() -> None:
    assert issues() == []


def test_an_issue_is_described_by_its_rule_message_and_releases() -> None:
    [issue] = issues(remark())
    assert issue["check_name"] == "flag-unknown-to-engine"
    assert issue["description"] == "flag-unknown-to-engine: --x is not an option [0.5.22, 0.5.23]"
