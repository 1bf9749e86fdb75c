"""The words that every readable format of a report shares: headline, releases, differences."""

from __future__ import annotations

import pytest

from launcher.gate.outputs.words import affected_text, difference_text, headline, remark_text, targets_text
from launcher.gate.report import Affected, Difference, Status
from tests.support.gate_fixtures import remark, report


def test_a_headline_counts_profiles_launches_and_what_blocks() -> None:
    judged = report(remark(), remark(), remark(Status.INCONCLUSIVE), remark(Status.NOTE), targets=2)
    assert headline(judged) == "fail: 1 profile affected, 2 launches judged, 2 blocking remarks, 1 undecided"
    assert headline(report(remark(), targets=1)) == "fail: 1 profile affected, 1 launch judged, 1 blocking remark"


def test_a_change_without_profiles_has_its_own_headline_unless_something_blocks() -> None:
    assert headline(report(affected=())) == "pass: no profile is affected"
    assert headline(report(remark(), affected=())) == "fail: 0 profiles affected, 1 blocking remark"


@pytest.mark.parametrize(
    ("targets", "text"),
    [
        ((), ""),
        (("0.5.22",), "0.5.22"),
        (("0.5.22", "0.5.23"), "0.5.22, 0.5.23"),
        (("0.5.21", "0.5.22", "0.5.23"), "0.5.21 … 0.5.23 (3 releases)"),
        (("gpu-box (0.5.20)",), "gpu-box (0.5.20)"),
        (("0.5.22", "gpu-box (0.5.20)", "other (engine unknown)"), "0.5.22, gpu-box (0.5.20), other (engine unknown)"),
    ],
)
def test_releases_are_shortened_and_hosts_are_all_named(targets: tuple[str, ...], text: str) -> None:
    assert targets_text(targets) == text


@pytest.mark.parametrize(
    ("kind", "before", "after", "text"),
    [
        ("flag", None, "1", "+ --x: 1"),
        ("flag", "1", None, "- --x: 1"),
        ("flag", "1", "2", "~ --x: 1 → 2"),
        ("flag", "", "2", "~ --x:  → 2"),
        ("env", None, "1", "+ env x: 1"),
        ("engine", "a", "b", "~ x: a → b"),
    ],
)
def test_a_difference_shows_old_and_new_value(kind: str, before: str | None, after: str | None, text: str) -> None:
    assert difference_text(Difference(kind=kind, name="x", before=before, after=after)) == text


def test_a_profile_is_shown_with_every_reason() -> None:
    item = Affected(name="a", change="new", path="p", reasons=("new", "host gpu-box is new"))
    assert affected_text(item) == "a: new; host gpu-box is new"


def test_a_remark_without_targets_has_no_empty_brackets() -> None:
    assert remark_text(remark()) == "flag-unknown-to-engine: --x is not an option [0.5.22, 0.5.23]"
    assert remark_text(remark(targets=())) == "flag-unknown-to-engine: --x is not an option"
