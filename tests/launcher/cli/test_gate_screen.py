"""The report of the gate on a terminal: what changed, what blocks, and the verdict next to the prompt."""

from __future__ import annotations

from typing import Any

import pytest

from checks.vocabulary import Severity
from launcher.cli.gate_screen import lines, trial_lines
from launcher.gate.report import (
    Affected,
    Comparison,
    Difference,
    Effect,
    Place,
    Remark,
    Replayed,
    Report,
    Status,
    Trial,
)

TRIAL = Trial(
    profile="chat", host="gpu-box", verdict="worse", message="decode is slower", gpu_minutes=2.46,
    comparisons=(Comparison(name="speed", verdict="worse", message="-20 %"),),
)  # fmt: skip


def remark(status: Status, remedies: int = 0) -> Remark:
    return Remark(
        rule="bad-flag", status=status, severity=Severity.ERROR, message="it is [bad]", targets=("0.5.23",),
        place=Place(path="profiles/a.yaml", line=5, column=3), remedies=tuple(f"remedy {n}" for n in range(remedies)),
    )  # fmt: skip


def report(**fields: Any) -> Report:
    return Report(
        **{"tier": "static", "base": "0123456789abcdef", "base_note": "main", "affected": (), "remarks": (), **fields}
    )


def test_the_verdict_is_the_last_line() -> None:
    assert list(lines(report())) == ["base      0123456789ab (main)", "verdict   pass: no profile is affected"]
    failing = list(lines(report(remarks=(remark(Status.FAIL),), trials=(TRIAL,))))
    assert failing[-1].startswith("verdict   fail")


def test_without_a_base_the_reason_stands_in_its_place() -> None:
    assert next(lines(report(base="", base_note="all profiles"))) == "base      all profiles"


def test_an_affected_profile_shows_values_and_command_line() -> None:
    affected = Affected(
        name="chat", change="changed", path="profiles/chat.yaml", reasons=("its file changed", "its parent changed"),
        differences=(Difference(kind="flag", name="tp-size", before="2", after="4"),),
        effects=(Effect(releases=("0.5.22", "0.5.23"), removed=("--tp-size 2",), added=("--tp-size 4", "--x")),),
    )  # fmt: skip
    assert list(lines(report(affected=(affected,))))[1:-1] == [
        "affected  chat: its file changed; its parent changed",
        "            ~ --tp-size: 2 → 4",
        "            command line in 0.5.22, 0.5.23:",
        "              - --tp-size 2",
        "              + --tp-size 4",
        "              + --x",
    ]


@pytest.mark.parametrize("status", list(Status))
def test_only_what_blocks_shows_its_remedies(status: Status) -> None:
    shown = list(lines(report(remarks=(remark(status, remedies=5),))))[1:-1]
    assert shown[0].endswith(" profiles/a.yaml:5:3: bad-flag: it is [bad] [0.5.23]")
    blocking = status in (Status.FAIL, Status.INCONCLUSIVE)
    assert [line.strip() for line in shown[1:]] == [f"remedy: remedy {n}" for n in range(3 if blocking else 0)]


def test_each_status_has_a_label_of_its_own() -> None:
    labels = {next(iter(list(lines(report(remarks=(remark(status),))))[1].split())) for status in Status}
    assert len(labels) == len(Status) and "FAIL" in labels


def test_a_replayed_run_says_whether_its_verdict_flipped() -> None:
    same = Replayed(run="r", profile="chat", path="a.tar.gz", recorded={}, now={})
    changed = Replayed(
        run="r", profile="chat", path="b.tar.gz", recorded={}, now={}, flipped=("cause", "refused"), notes=("no log",)
    )
    assert list(lines(report(replayed=(same, changed))))[1:-1] == [
        "replayed  a.tar.gz: same verdicts", "replayed  b.tar.gz: flipped: cause, refused; no log",
    ]  # fmt: skip


def test_a_trial_shows_its_price_and_each_comparison() -> None:
    head, comparison = trial_lines(TRIAL)
    assert head == "trial     chat on gpu-box: worse; decode is slower (2.5 GPU minutes)"
    assert comparison.split() == ["speed", "worse", "-20", "%"]
    assert head in list(lines(report(trials=(TRIAL,))))
