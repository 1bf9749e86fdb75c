"""The releases in which a function changed, by the shipped table and by a small one."""

from __future__ import annotations

import pytest

from checks.engine import function_history
from checks.engine.function_history import Changes, changes
from checks.engine.release_rows import recorded

TABLE = "1.0\t1.1\t1.2\t1.3\nsrt/a.py\tC.f:0,2\tg:1,-3\tD.same:0,1\tE.same:0,2\nsrt/b.py\th:0,1,2\n"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_history, "_table", lambda: TABLE)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("function", "release", "later", "gone", "changed_in", "before"),
    [
        ("f", "1.0", "1.2", False, "1.0", ""),
        ("f", "1.1", "1.2", False, "1.0", ""),
        ("f", "1.2", "", False, "1.2", "1.1"),
        ("C.f", "1.3", "", False, "1.2", "1.1"),
        ("g", "1.2", "1.3", True, "1.1", ""),
    ],
)
def test_changes_around_a_release(
    function: str, release: str, later: str, gone: bool, changed_in: str, before: str
) -> None:
    found = changes("srt/a.py", function, release)
    assert isinstance(found, Changes)
    assert (found.later, found.gone, found.changed_in, found.before) == (later, gone, changed_in, before)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("file", "function", "release"),
    [
        ("srt/a.py", "g", "1.0"),  # not there yet
        ("srt/a.py", "g", "1.3"),  # gone
        ("srt/a.py", "same", "1.0"),  # two classes have it
        ("srt/a.py", "absent", "1.0"),
        ("srt/absent.py", "f", "1.0"),
        ("srt/a.py", "f", "9.9"),
    ],
)
def test_what_is_not_known_has_no_changes(file: str, function: str, release: str) -> None:
    assert changes(file, function, release) is None


def test_the_shipped_table_has_every_recorded_release() -> None:
    assert tuple(function_history._table().partition("\n")[0].split("\t")) == recorded("sites")
    assert changes("srt/managers/scheduler.py", "run_scheduler_process", "0.5.10") is not None
