"""Each kind of evidence has a sentence that a person can verify."""

from __future__ import annotations

import pytest

from checks.suspects.attribution_wording import foreseen_title, reasons, unknown_kind
from checks.suspects.foreseen import Foreseen
from checks.suspects.ranking import Reason, Weighed
from checks.suspects.settings import Setting
from checks.vocabulary import Finding, Severity

SETTING = Setting(fact="flag.page-size", value="16", attributes=("page_size",))
ERRORS = tuple(Finding(id=name, severity=Severity.ERROR, message=f"{name} is wrong") for name in ("a", "b"))


def sentences(*items: Reason) -> tuple[str, ...]:
    return reasons(Weighed(setting=SETTING, score=9, reasons=items))


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (Reason(weight=5, kind="names", word="--page-size"), "the message names --page-size"),
        (Reason(weight=5, kind="condition", word="$SGLANG_X"), "under a condition on SGLANG_X"),
        (Reason(weight=5, kind="selects", place="srt/a.py:1", word="fa3"), "srt/a.py:1 is reached only if"),
        (Reason(weight=5, kind="word", word="page"), "the message mentions `page`"),
        (Reason(weight=5, kind="word", word="page", place="srt/a.py:1"), "in the path or function at srt/a.py:1"),
        (Reason(weight=5, kind="foreseen", word="odd-page"), "`launch check` reports odd-page"),
    ],
)
def test_a_reason_says_what_to_look_at(reason: Reason, sentence: str) -> None:
    assert sentence in sentences(reason)[0]


def test_weak_reasons_are_left_out_unless_there_is_no_other() -> None:
    strong, weak = Reason(weight=3, kind="names", word="--x"), Reason(weight=0.1, kind="word", word="y")
    assert len(sentences(strong, weak)) == 1
    assert len(sentences(weak)) == 1


def test_several_reasons_of_a_launch_that_cannot_start_are_counted() -> None:
    title = foreseen_title(Foreseen(errors=ERRORS, before_ranks=True), "0.5.10")
    assert title == "this launch cannot start on SGLang 0.5.10, for 2 reasons; the first: a is wrong"
    assert foreseen_title(Foreseen(errors=ERRORS[:1], before_ranks=True), None) == "a is wrong"


def test_an_unknown_kind_is_answered_with_every_known_one() -> None:
    assert unknown_kind("purple", {"slow": ("slow", "low-throughput")}).endswith("slow: slow, low-throughput")
