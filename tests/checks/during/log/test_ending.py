"""How a log ends, from lists of lines: stopped on request, died, stalled, or cut off while healthy."""

from __future__ import annotations

from itertools import permutations

import pytest

from checks.during.log.ending import Ending, read_ending
from checks.during.log.incidents import Incident, incidents
from checks.during.log.lines import parse

AT = "[2026-11-29 15:25:01 TP0] "
ARGS = AT + "server_args=ServerArgs(model_path='m')"
READY = AT + "The server is fired up and ready to roll!"
DECODE = AT + "Decode batch, #running-req: 2"
PREFILL = AT + "Prefill batch, #new-seq: 1"
ANSWER = AT + 'INFO:     1.2.3.4:5 - "POST /generate HTTP/1.1" 200 OK'
HEALTHY = AT + 'INFO:     1.2.3.4:5 - "GET /health HTTP/1.1" 200 OK'
REFUSED = AT + 'INFO:     1.2.3.4:5 - "GET /health HTTP/1.1" 503 Service Unavailable'
STALL = AT + "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds."
STOP = AT + "SIGTERM received. signum=None frame=None. Draining requests and shutting down..."
DEATH = AT + "SIGQUIT received. signum=None, frame=None. It usually means one child failed."
FAILED = [
    AT + "Scheduler hit an exception: Traceback (most recent call last):",
    '  File "/a/x.py", line 1, in f',
    "ValueError: bad",
]


def read(*rows: str) -> tuple[Ending, tuple[Incident, ...]]:
    lines = [line for number, row in enumerate(rows, 1) for line in parse(row.encode(), number)]
    found = incidents(lines)
    return read_ending(lines, found), found


def ending(*rows: str) -> Ending:
    return read(*rows)[0]


@pytest.mark.parametrize(
    "row",
    [
        STOP,
        AT + "Received SIGTERM, shutting down",
        AT + "Received SIGINT",
        AT + "Signal SIGTERM received",
        "INFO:     Shutting down",
        "^C",
        "^C[2026-11-29 15:25:01] x",
        "Terminated",
    ],
)
def test_a_request_to_stop_is_seen_in_each_form(row: str) -> None:
    assert (ending(READY, row).stop, ending(READY, row).death) == (2, 0)


@pytest.mark.parametrize("row", ["^Cat", "Terminated: worker 3", AT + "the client received SIGTERM"])
def test_a_line_that_only_mentions_a_stop_is_not_a_request_to_stop(row: str) -> None:
    assert ending(READY, row).stop == 0


def test_an_interrupt_from_the_keyboard_is_a_request_to_stop() -> None:
    rows = ["Traceback (most recent call last):", '  File "/a/x.py", line 1, in f', "KeyboardInterrupt"]
    assert ending(READY, *rows).stop == 2
    assert ending(READY, *rows[:2], "ValueError: KeyboardInterrupt").stop == 0


@pytest.mark.parametrize(
    "row",
    [
        DEATH,
        AT + "Received sigquit from a child process. It usually means the child failed.",
        *FAILED[:1],
        AT + "Subprocess scheduler (pid=7) crashed with exit code -9",
        "bash: line 1:  4711 Killed                  python3 -m sglang.launch_server",
        AT + "Rank 0 scheduler died during initialization (exit code: -9).",
        AT + "Rank 0 scheduler is dead.",
        "Segmentation fault (core dumped)",
        AT + "Initialization failed. error: x",
    ],
)
def test_a_death_is_seen_in_each_form(row: str) -> None:
    assert (ending(READY, row).death, ending(READY, row).stop) == (2, 0)


def test_only_the_first_death_counts() -> None:
    assert ending(READY, DEATH, DEATH).death == 2


def test_a_failure_after_a_request_to_stop_is_not_a_death() -> None:
    assert (ending(READY, STOP, DEATH).stop, ending(READY, STOP, DEATH).death) == (2, 0)
    before = ending(READY, DEATH, STOP)
    assert (before.death, before.stop) == (2, 3)


def test_an_engine_that_is_started_again_was_not_stopped() -> None:
    assert ending(READY, STOP, ARGS, READY).stop == 0
    assert ending(READY, STOP, ARGS, READY, DEATH).death == 5


def test_a_stop_divides_what_failed_from_what_only_followed() -> None:
    state, found = read(*FAILED, STOP, *FAILED)
    assert [state.after_stop(item) for item in found if item.kind == "traceback"] == [False, True]
    state, [unasked] = read(*FAILED)
    assert not state.after_stop(unasked)


# --- stalls


@pytest.mark.parametrize(
    "row",
    [
        STALL,
        AT + "Scheduler watchdog timeout (self.watchdog_timeout=300)",
        "[rank0]: Watchdog caught collective operation timeout",
    ],
)
def test_a_stall_lasts_until_the_log_shows_progress(row: str) -> None:
    assert ending(READY, row).stall == 2
    assert ending(READY, row, AT + "still here").stall == 2
    for moving in (DECODE, ANSWER, HEALTHY, READY):
        assert ending(READY, row, moving).stall == 0
    assert ending(READY, row, DECODE, row).stall == 4


def test_one_working_rank_and_rejected_requests_do_not_end_a_stall() -> None:
    assert ending(READY, STALL, PREFILL).stall == 2
    assert ending(READY, STALL, REFUSED).stall == 2


def test_the_engine_reports_a_stop_during_a_stall() -> None:
    stuck = AT + "Signal SIGTERM received while health check failed. Force exiting."
    assert (ending(READY, stuck).stop, ending(READY, stuck, stuck).stall) == (2, 3)
    assert ending(READY, STALL, STOP).stall == 2
    assert ending(READY, STOP, STALL).stall == 0


@pytest.mark.parametrize(
    ("rows", "stall"),
    [
        ([REFUSED] * 5, 0),
        ([READY, *[REFUSED] * 5], 0),
        ([READY, ANSWER, *[REFUSED] * 2], 0),
        ([READY, ANSWER, *[REFUSED] * 3], 5),
        ([READY, ANSWER, *[REFUSED] * 2, ANSWER, *[REFUSED] * 2], 0),
        ([READY, ANSWER, *[REFUSED] * 4, HEALTHY], 0),
        ([DECODE, *[REFUSED.replace("/health", "/health_generate")] * 3], 4),
        ([DECODE, *[REFUSED.replace("GET /health", "GET /metrics")] * 3], 0),
        ([DECODE, *[REFUSED] * 3, STOP, REFUSED], 4),
    ],
)
def test_three_failed_health_checks_in_a_row_after_work_are_a_stall(rows: list[str], stall: int) -> None:
    assert ending(*rows).stall == stall


def test_a_stall_has_passed_once_all_ranks_work_again() -> None:
    assert ending(READY, STALL, DECODE).passed == 2
    assert ending(READY, STALL, HEALTHY).passed == 2
    assert ending(STALL, STALL, DECODE, STALL).passed == 2
    for row in (ANSWER, PREFILL, READY, REFUSED):
        assert ending(STALL, row).passed == 0
    assert ending(DECODE, STALL).passed == 0


# --- alive


def test_the_last_answer_and_the_last_movement_are_kept() -> None:
    found = ending(READY, ANSWER, PREFILL, AT + "note", "raw text")
    assert found.alive == 3
    assert found.last is not None and (found.last.number, found.last.text) == (4, "note")
    assert ending("raw", "text").last is None
    bar = ending(READY, "Capturing: 50%|#####     | 5/10 [00:01<00:01]").last
    assert bar is not None and bar.number == 2
    assert ending().alive == 0


@pytest.mark.parametrize(
    ("below", "overcome"),
    [
        ([], False),
        ([AT + "note"], False),
        ([ANSWER], True),
        ([ANSWER, DEATH], False),
        ([ANSWER, STALL], False),
        ([ANSWER, STOP], True),
        ([ANSWER, STOP, DEATH], True),
    ],
)
def test_a_traceback_is_overcome_if_the_engine_responds_and_never_dies(below: list[str], overcome: bool) -> None:
    trace = ["ERROR:    Exception in ASGI application", *FAILED[1:]]
    trace.insert(1, "Traceback (most recent call last):")
    state, found = read(READY, *trace, *below)
    [incident] = [item for item in found if item.kind == "traceback"]
    assert state.overcome(incident) is overcome
    assert state.went_on(incident) is (ANSWER in below)


def test_a_line_is_overcome_only_if_it_was_a_stall() -> None:
    state, found = read(READY, AT + "Something odd", STALL, DECODE)
    assert [state.overcome(item) for item in found if item.line in (2, 3)] == [False, True]


def test_a_stall_that_has_passed_is_overcome_whatever_comes_later() -> None:
    state, found = read(READY, STALL, DECODE, DEATH)
    assert state.overcome(next(item for item in found if item.line == 2))
    state, found = read(READY, STALL, ANSWER, DEATH)
    assert not state.overcome(next(item for item in found if item.line == 2))


@pytest.mark.parametrize("rows", list(permutations([ANSWER, DEATH, STOP])))
def test_every_number_is_that_of_a_line_of_its_kind(rows: tuple[str, ...]) -> None:
    found = ending(*rows)
    assert found.alive == rows.index(ANSWER) + 1
    assert found.stop == rows.index(STOP) + 1
    assert found.death == (rows.index(DEATH) + 1 if rows.index(DEATH) < rows.index(STOP) else 0)
