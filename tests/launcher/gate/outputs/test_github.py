"""GitHub annotations: failures first, one line each, and no text can end or forge a command."""

from __future__ import annotations

import pytest

from checks.vocabulary import Severity
from launcher.gate.outputs.github import annotation, workflow_commands
from launcher.gate.report import Place, Status
from tests.support.gate_fixtures import remark, report


def kinds(text: str) -> list[str]:
    return [line.split(" ")[0].strip(":") for line in text.splitlines()]


def test_errors_come_first_and_what_would_end_a_command_is_escaped() -> None:
    text = workflow_commands(report(remark(Status.NOTE), remark(message="50% off\n::error::forged", rule="a,b:c")))
    first, second = text.splitlines()
    suffix = " [0.5.22, 0.5.23]%0ARemedy: Leave it out."
    place = "file=profiles/a.yaml,line=5,col=3"
    assert first == f"::error {place},title=a%2Cb%3Ac (a)::50%25 off%0A::error::forged{suffix}"
    assert second == f"::warning {place},title=flag-unknown-to-engine (a)::--x is not an option{suffix}"


def test_the_path_of_a_file_cannot_add_a_property() -> None:
    place = Place(path="a,line=9:b\r\n::stop-commands::x%")
    assert annotation("error", place, "t", "m") == (
        "::error file=a%2Cline=9%3Ab%0D%0A%3A%3Astop-commands%3A%3Ax%25,line=1,col=1,title=t::m"
    )


@pytest.mark.parametrize(
    ("status", "severity", "kind"),
    [
        (Status.FAIL, Severity.INFO, "error"),
        (Status.INCONCLUSIVE, Severity.ERROR, "warning"),
        (Status.NOTE, Severity.INFO, "notice"),
        (Status.KNOWN, Severity.ERROR, "notice"),
    ],
)
def test_a_remark_is_as_loud_as_its_status_and_severity(status: Status, severity: Severity, kind: str) -> None:
    assert kinds(workflow_commands(report(remark(status, severity=severity)))) == [kind]


def test_accepted_and_expected_remarks_are_not_annotated() -> None:
    assert workflow_commands(report(remark(Status.ACCEPTED), remark(Status.EXPECTED))) == ""


def test_undecided_remarks_come_before_notes_and_old_faults_come_last() -> None:
    order = (Status.KNOWN, Status.NOTE, Status.INCONCLUSIVE, Status.FAIL)
    text = workflow_commands(report(*(remark(status, message=str(status)) for status in order)))
    assert [line.rpartition("::")[2].split(" ")[0] for line in text.splitlines()] == [
        "fail", "inconclusive", "note", "known",
    ]  # fmt: skip


def test_a_remark_without_a_profile_has_the_rule_alone_as_its_title() -> None:
    assert "title=flag-unknown-to-engine::" in workflow_commands(report(remark(profile="")))


def test_an_annotation_shows_at_most_two_remedies() -> None:
    text = workflow_commands(report(remark(remedies=("one", "two", "three"))))
    assert text.count("Remedy: ") == 2
    assert "three" not in text
