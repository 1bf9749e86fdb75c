"""Which lines belong together: lines in, drafts out, each as its kind and line numbers."""

from __future__ import annotations

import pytest

from checks.during.log.incident_builder import ERROR, Builder, Draft, ends, is_new_process
from checks.during.log.lines import Line, parse

HEAD = "[2026-11-29 15:25:01 TP0] "
START = "Traceback (most recent call last):"
FRAME = '  File "/a/x.py", line 1, in f'
SOURCE = "    go()"
ERROR_LINE = "ValueError: bad"
TRACE = [START, FRAME, SOURCE, ERROR_LINE]
CAUSE_OF = "The above exception was the direct cause of the following exception:"


def lines(rows: list[str], first: int = 1) -> list[Line]:
    return [line for number, row in enumerate(rows, first) for line in parse(row.encode(), number)]


def build(rows: list[Line]) -> list[Draft]:
    builder = Builder()
    for line in rows:
        builder.add(line)
    return builder.drafts


def shape(rows: list[str]) -> list[tuple[str, list[int]]]:
    return [(draft.kind, [line.number for line in draft.lines]) for draft in build(lines(rows))]


@pytest.mark.parametrize(
    ("rows", "drafts"),
    [
        # records
        ([HEAD + "one", HEAD + "two"], [("line", [1]), ("line", [2])]),
        ([HEAD + "one", "goes on", "", "and on"], [("line", [1, 2, 4])]),
        ([HEAD + "one", "Capturing: 50%|##   | 5/10", "goes on"], [("line", [1]), ("line", [2]), ("line", [3])]),
        (["raw", "raw"], [("line", [1]), ("line", [2])]),
        (["", "  "], []),
        # tracebacks
        (TRACE, [("traceback", [1, 2, 3, 4])]),
        ([HEAD + START, FRAME, ERROR_LINE], [("traceback", [1, 2, 3])]),
        ([*TRACE, "goes on", HEAD + "next"], [("traceback", [1, 2, 3, 4, 5]), ("line", [6])]),
        ([*TRACE, *TRACE], [("traceback", [1, 2, 3, 4]), ("traceback", [5, 6, 7, 8])]),
        ([*TRACE, "", CAUSE_OF, "", *TRACE], [("traceback", list(range(1, 12)))]),
        ([*TRACE, "/a/x.py:3: UserWarning: x"], [("traceback", [1, 2, 3, 4]), ("line", [5])]),
        ([*TRACE, "rc=1"], [("traceback", [1, 2, 3, 4]), ("line", [5])]),
        ([*TRACE, "usage: x [-h]", "x: error: no"], [("traceback", [1, 2, 3, 4]), ("usage", [5, 6])]),
        ([*TRACE, "terminate called after"], [("traceback", [1, 2, 3, 4]), ("fatal", [5])]),
        ([*TRACE, "host:1:2 [0] NCCL WARN x"], [("traceback", [1, 2, 3, 4]), ("line", [5])]),
        ([*TRACE, "Capturing: 50%|##   | 5/10"], [("traceback", [1, 2, 3, 4]), ("line", [5])]),
        ([*TRACE[:3], "terminate called after"], [("traceback", [1, 2, 3, 4])]),
        ([*TRACE, FRAME, "KeyError: 1"], [("traceback", [1, 2, 3, 4]), ("traceback", [5, 6])]),
        (
            ["  | " + START, "  | " + FRAME, "  | ExceptionGroup: two", "    | " + START, "    | ValueError: x"],
            [("traceback", [1, 2, 3, 4, 5])],
        ),
        (["ValueError: alone", HEAD + "x"], [("traceback", [1]), ("line", [2])]),
        ([HEAD + "failed", "ValueError: below"], [("line", [1]), ("traceback", [2])]),
        # usage texts
        (["usage: a [-h]", "  [--x]", "a serve: error: no"], [("usage", [1, 2, 3])]),
        (["usage: a [-h]", "a: error: no", "raw"], [("usage", [1, 2]), ("line", [3])]),
        (["launch_server.py: error: no"], [("usage", [1])]),
        (["x.cu:3:7: error: no"], [("native", [1])]),
        # native code
        (["terminate called after", "  what():  CUDA error", "", "frame #0"], [("fatal", [1, 2, 4])]),
        ([HEAD + "Fatal Python error: Aborted", "Thread 0x1"], [("fatal", [1, 2])]),
        (["Segmentation fault", "bash: line 1: 7 Killed"], [("fatal", [1]), ("line", [2])]),
        (["x.cpp:9: f: Assertion `a' failed."], [("fatal", [1])]),
        # a long line of arguments is neither
        ([HEAD + f"server_args=x {START}", "raw"], [("line", [1, 2])]),
    ],
)
def test_lines_are_put_together(rows: list[str], drafts: list[tuple[str, list[int]]]) -> None:
    assert shape(rows) == drafts


def test_a_gap_in_the_kept_lines_ends_what_was_open() -> None:
    together = build([*lines([HEAD + "one"]), *lines(["goes on"], first=2)])
    apart = build([*lines([HEAD + "one"]), *lines(["goes on"], first=3)])
    assert [len(draft.lines) for draft in together] == [2]
    assert [len(draft.lines) for draft in apart] == [1, 1]


def test_a_frame_without_a_start_is_headless() -> None:
    [draft] = build(lines([FRAME, ERROR_LINE]))
    assert (draft.kind, draft.headless, draft.interleaved, draft.ended) == ("traceback", True, False, True)
    [whole] = build(lines(TRACE))
    assert (whole.headless, whole.interleaved, whole.ended) == (False, False, True)


def test_a_traceback_without_its_exception_has_not_ended() -> None:
    assert not build(lines(TRACE[:3]))[0].ended
    assert not build(lines([*TRACE, "", CAUSE_OF]))[0].ended


@pytest.mark.parametrize("distance", [2, 300])
def test_the_rest_of_a_traceback_that_was_cut_in_two_is_put_below_it(distance: int) -> None:
    between = lines([HEAD + f"note {number}" for number in range(distance)], first=3)
    rest = lines([FRAME, ERROR_LINE], first=3 + distance)
    drafts = build([*lines([START, FRAME]), *between, *rest])
    assert [line.number for line in drafts[0].lines] == [1, 2, 3 + distance, 4 + distance]
    assert drafts[0].interleaved and not any(draft.headless for draft in drafts)


def test_a_line_far_below_does_not_continue_a_traceback() -> None:
    drafts = build([*lines([START, FRAME]), *lines([FRAME, ERROR_LINE], first=500)])
    assert [[line.number for line in draft.lines] for draft in drafts] == [[1, 2], [500, 501]]
    assert drafts[1].headless


@pytest.mark.parametrize(
    "begin",
    [
        "'python -m sglang.launch_server' is still supported, but deprecated",
        "nohup: ignoring input",
        HEAD + "server_args=ServerArgs(x=1)",
        "usage: sglang [-h]",
    ],
)
def test_a_new_process_does_not_go_on_with_what_another_left_unfinished(begin: str) -> None:
    drafts = build(lines([START, FRAME, SOURCE, begin, HEAD + "loading", FRAME, ERROR_LINE]))
    assert [line.number for line in drafts[0].lines][:3] == [1, 2, 3]
    assert [line.number for draft in drafts if draft.headless for line in draft.lines] == [6, 7]


def test_what_a_collector_names_is_put_together_by_that_name() -> None:
    rows = [f"node-{number % 2} | {row}" for row in TRACE for number in (0, 1)]
    drafts = build(lines(rows))
    assert [[line.number for line in draft.lines] for draft in drafts] == [[1, 3, 5, 7], [2, 4, 6, 8]]
    assert not any(draft.interleaved for draft in drafts)


def test_no_line_is_in_two_drafts_and_only_blank_ones_are_in_none() -> None:
    rows = [*TRACE, HEAD + START, FRAME, HEAD + "note", SOURCE, *TRACE, "", "raw", FRAME, "usage: x", ERROR_LINE]
    numbers = [line.number for draft in build(lines(rows)) for line in draft.lines]
    assert len(numbers) == len(set(numbers))
    assert set(range(1, len(rows) + 1)) - set(numbers) <= {rows.index("") + 1}


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("ValueError: no", "ValueError", "no"),
        ("AssertionError", "AssertionError", None),
        ("torch.OutOfMemoryError: CUDA", "torch.OutOfMemoryError", "CUDA"),
        (
            "huggingface_hub.errors.RepositoryNotFoundError: 401",
            "huggingface_hub.errors.RepositoryNotFoundError",
            "401",
        ),
        ("pkg.mod.Odd: x", "pkg.mod.Odd", "x"),
        ("queue.Empty", "queue.Empty", None),
        ("KeyError:", "KeyError", ""),
        ("Exception: x", "Exception", "x"),
        ("StopIteration", "StopIteration", None),
    ],
)
def test_an_exception_is_recognised_by_its_form(text: str, kind: str, message: str | None) -> None:
    match = ERROR.match(text)
    assert match is not None and (match["type"], match["message"]) == (kind, message)
    assert ends(text)


@pytest.mark.parametrize(
    "text",
    ["", " ValueError: indented", FRAME, "valueError: x", "Note: x", "This is an Error", "Error in x", "INFO: x"],
)
def test_other_text_is_not_an_exception(text: str) -> None:
    assert not ends(text)


def test_a_new_process_is_recognised_by_its_first_line() -> None:
    assert is_new_process(Line(number=1, text="nohup: ignoring input and appending"))
    assert is_new_process(Line(number=1, text="x: 'python -m sglang.launch_server' is still supported"))
    assert not is_new_process(Line(number=1, text="about nohup: ignoring input"))
