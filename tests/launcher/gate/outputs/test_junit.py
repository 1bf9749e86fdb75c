"""JUnit XML: a suite per profile, a case per remark, and only blocking and undecided remarks do not pass."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from msgspec.structs import replace

from launcher.gate.outputs.junit import junit
from launcher.gate.report import Affected, Place, Remark, Report, Status
from tests.support.gate_fixtures import remark, report

COUNTS = ("tests", "failures", "errors", "skipped")


def parsed(judged: Report) -> Element:
    return ElementTree.fromstring(junit(judged))


def counted(element: Element) -> tuple[str | None, ...]:
    return tuple(element.get(key) for key in COUNTS)


def case_of(item: Remark) -> Element:
    return next(case for case in parsed(report(item)).iter("testcase"))


def test_failures_errors_and_skips_are_counted() -> None:
    root = parsed(report(*(remark(status) for status in Status), seconds=1.5))
    assert (counted(root), root.get("time")) == (("6", "1", "1", "4"), "1.500")
    [failure] = root.iter("failure")
    assert str(failure.text).splitlines() == ["profiles/a.yaml:5:3", "--x is not an option", "remedy: Leave it out."]


def test_a_clean_profile_is_a_passing_case() -> None:
    root = parsed(report())
    assert counted(root) == ("1", "0", "0", "0")
    assert [list(case) for case in root.iter("testcase")] == [[]]


@pytest.mark.parametrize("status", [Status.ACCEPTED, Status.KNOWN, Status.EXPECTED, Status.NOTE])
def test_a_remark_that_does_not_block_is_skipped_and_says_why(status: Status) -> None:
    [skipped] = case_of(remark(status))
    assert skipped.tag == "skipped"
    assert str(skipped.get("message")).startswith(f"{status}: flag-unknown-to-engine: --x is not an option")


def test_each_profile_has_a_suite_and_the_totals_are_their_sum() -> None:
    unchanged = Affected(name="b", change="inputs", path="profiles/b.yaml", reasons=("host x is new",))
    judged = report(remark(), remark(Status.NOTE), remark(Status.INCONCLUSIVE, profile="c"))
    root = parsed(replace(judged, affected=(*judged.affected, unchanged)))
    assert {suite.get("name"): counted(suite) for suite in root} == {
        "a": ("2", "1", "0", "1"), "b": ("1", "0", "0", "0"), "c": ("1", "0", "1", "0"),
    }  # fmt: skip
    assert counted(root) == ("4", "1", "1", "1")


def test_a_remark_without_a_profile_belongs_to_the_repository() -> None:
    root = parsed(report(remark(profile="", place=Place(path="gate.yaml", line=11))))
    suites = {suite.get("name"): suite for suite in root}
    assert set(suites) == {"a", "repository"}
    [case] = suites["repository"]
    assert (case.get("classname"), case.get("file"), case.get("line")) == ("repository", "gate.yaml", "11")


def test_characters_that_xml_cannot_hold_are_replaced_and_markup_is_escaped() -> None:
    case = case_of(remark(message="]]></failure> \x00\x1b[31m\ud800 & \U0001f600"))
    [failure] = case
    assert "]]></failure> ��[31m� & \U0001f600" in str(failure.text)


def test_a_case_is_named_after_rule_and_subject() -> None:
    assert case_of(remark()).get("name") == "flag-unknown-to-engine flag.x"
    assert case_of(remark(subject="")).get("name") == "flag-unknown-to-engine"
