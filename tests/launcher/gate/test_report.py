"""The verdict of a report is that of its worst remark, and only two statuses keep a gate from passing."""

from __future__ import annotations

from itertools import permutations

import pytest

from launcher.gate.report import Gate, Place, Status
from tests.support.gate_fixtures import remark, report


@pytest.mark.parametrize(
    ("statuses", "verdict"),
    [
        ((), Gate.PASS),
        ((Status.ACCEPTED, Status.KNOWN, Status.EXPECTED, Status.NOTE), Gate.PASS),
        ((Status.NOTE, Status.INCONCLUSIVE), Gate.INCONCLUSIVE),
        ((Status.FAIL,), Gate.FAIL),
    ],
)
def test_the_worst_status_decides(statuses: tuple[Status, ...], verdict: Gate) -> None:
    assert report(*map(remark, statuses)).verdict is verdict


def test_a_failure_outweighs_everything_else_in_any_order() -> None:
    orders = permutations((Status.FAIL, Status.INCONCLUSIVE, Status.NOTE))
    assert {report(*map(remark, statuses)).verdict for statuses in orders} == {Gate.FAIL}


def test_remarks_are_chosen_by_status_and_keep_their_order() -> None:
    first, second, third = remark(Status.NOTE), remark(Status.FAIL), remark(Status.KNOWN)
    judged = report(first, second, third)
    assert judged.of(Status.KNOWN, Status.NOTE) == (first, third)
    assert judged.of(Status.EXPECTED) == judged.of() == ()


def test_a_place_is_written_as_editors_read_it() -> None:
    assert str(Place(path="profiles/a b.yaml", line=5, column=3)) == "profiles/a b.yaml:5:3"
    assert str(Place(path="hosts.yaml")) == "hosts.yaml:1:1"
