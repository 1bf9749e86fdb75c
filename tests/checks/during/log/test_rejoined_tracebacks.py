"""Overlapping tracebacks are joined into one only where a line was attributed by guess."""

from __future__ import annotations

from checks.during.log.incidents import Incident, raised
from checks.during.log.lines import Line
from checks.during.log.rejoined_tracebacks import rejoined

FRAME = '  File "/a/sglang/srt/{}.py", line 1, in {}'


def trace(numbers: list[int], name: str, *, guessed: bool = False) -> Incident:
    """A traceback of three lines at these places."""
    rows = ["Traceback (most recent call last):", FRAME.format(name, name), f"ValueError: {name}"]
    lines = tuple(Line(number=number, text=text) for number, text in zip(numbers, rows, strict=True))
    return Incident(kind="traceback", lines=lines, chain=raised(lines), interleaved=guessed)


def single(number: int) -> Incident:
    return Incident(kind="line", lines=(Line(number=number, text="Error"),))


def test_tracebacks_that_overlap_by_guess_become_one_with_every_frame() -> None:
    one, two = trace([1, 3, 5], "one", guessed=True), trace([2, 4, 6], "two")
    [joined] = rejoined([one, two])
    assert [line.number for line in joined.lines] == [1, 2, 3, 4, 5, 6]
    assert (joined.kind, joined.interleaved) == ("traceback", True)
    assert [frame.function for part in joined.chain for frame in part.frames] == ["one", "two"]
    assert joined.chain[0].message == "one\nValueError: two"


def test_tracebacks_that_overlap_without_a_guess_are_kept_whole_and_apart() -> None:
    known = [trace([1, 3, 5], "one"), trace([2, 4, 6], "two")]
    assert list(rejoined(known)) == known


def test_one_guess_among_many_joins_all_that_overlap() -> None:
    overlapping = [trace([1, 4, 9], "a"), trace([2, 5, 6], "b"), trace([3, 7, 8], "c", guessed=True)]
    [joined] = rejoined(overlapping)
    assert len(joined.lines) == 9


def test_separate_tracebacks_stay_separate_even_if_one_contains_a_guess() -> None:
    apart = [trace([1, 2, 3], "one", guessed=True), trace([4, 5, 6], "two", guessed=True)]
    assert list(rejoined(apart)) == apart


def test_an_overlap_is_measured_to_the_last_line_of_all_that_came_before() -> None:
    long, inside, later = (
        trace([1, 2, 20], "long", guessed=True),
        trace([3, 4, 5], "inside"),
        trace([10, 11, 12], "later"),
    )
    assert len(rejoined([long, inside, later])) == 1
    behind = trace([21, 22, 23], "behind")
    assert [item.line for item in rejoined([long, inside, behind])] == [1, 21]


def test_lines_between_stay_as_they_are_and_in_order() -> None:
    one, two, last = trace([2, 4, 6], "one", guessed=True), trace([3, 5, 8], "two"), trace([10, 11, 12], "last")
    found = rejoined([single(1), one, two, single(7), single(9), last])
    assert [(item.kind, item.line) for item in found] == [
        ("line", 1), ("traceback", 2), ("line", 7), ("line", 9), ("traceback", 10),
    ]  # fmt: skip
    assert found[-1] == last


def test_nothing_becomes_nothing() -> None:
    assert rejoined([]) == ()
