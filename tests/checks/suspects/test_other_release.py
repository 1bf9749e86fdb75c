"""The nearest release in which the function that failed has other code."""

from __future__ import annotations

import pytest

from checks.engine import function_history
from checks.suspects.clues import Clues, Place
from checks.suspects.other_release import other_release
from checks.vocabulary import Remedy

TABLE = "0.5.1\t0.5.2\t0.5.3\nsrt/a.py\tC.f:0,1,-2\tC.g:0,2\n"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_history, "_table", lambda: TABLE)


def proposed(function: str, version: str) -> Remedy | None:
    inner = Place(file="srt/a.py", engine=True, function=function, line=1)
    return other_release(Clues(places=(Place(file="/x/torch.py", engine=False, function="h", line=1), inner)), version)


def test_the_next_release_with_other_code_is_proposed() -> None:
    remedy = proposed("f", "0.5.1.post1")
    assert remedy is not None
    assert remedy.upgrade == {"sglang": "0.5.2"}
    assert remedy.text == "the next release with other code in C.f"


def test_a_release_without_the_function_is_proposed_as_that() -> None:
    remedy = proposed("f", "0.5.2")
    assert remedy is not None
    assert remedy.text == "the next release without C.f"


def test_without_a_later_change_the_release_before_the_last_one_is_proposed() -> None:
    remedy = proposed("g", "0.5.3")
    assert remedy is not None
    assert remedy.require == {"sglang": "==0.5.2"}
    assert "last changed in 0.5.3" in remedy.text


@pytest.mark.parametrize("version", ["", "0.0.0", "0.5.4.dev3+gabc", "unknown"])
def test_a_build_that_is_no_release_gets_no_proposal(version: str) -> None:
    assert proposed("g", version) is None


def test_a_function_that_never_changed_gets_no_proposal() -> None:
    assert proposed("absent", "0.5.1") is None
    assert other_release(Clues(), "0.5.1") is None
