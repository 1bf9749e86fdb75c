"""The copy of a run's log has every byte once, whatever the pieces are, and no secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from launcher.errors import HostUnreachable
from launcher.run.frames import Ended, LogBytes
from launcher.run.log_copy import Item, LogCopy, Lost, Tail
from launcher.run.store import Run
from launcher.secrets import Masker
from launcher.transport.base import Command
from launcher.transport.local import LocalStream, LocalTransport
from tests.support.scripted_run import ScriptedRun

Start = Callable[..., ScriptedRun]
LOG = "one é\r 10%\r 99%\ntwo\r\n\nlast \udcff\u2028x".encode("utf-8", "surrogateescape")
LINES = ["one é", " 10%", " 99%", "two", "last \udcff\u2028x"]
FEW = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FEW
@given(st.lists(st.integers(1, 12), max_size=30))
def test_any_pieces_give_the_same_lines_and_the_same_copy(run: Run, sizes: list[int]) -> None:
    copy, lines, at = LogCopy(run, Masker()), list[str](), 0
    copy.restart()
    for size in [*sizes, len(LOG)]:
        piece = LOG[at : at + size]
        lines += copy.feed(LogBytes(piece, at))
        at += len(piece)
        assert copy.seen == at
    lines += copy.finish()
    assert lines == LINES
    assert run.log.read_bytes() == LOG
    assert copy.offset == len(LOG)


def test_a_progress_bar_is_copied_as_it_grows(run: Run) -> None:
    assert LogCopy(run, Masker()).feed(LogBytes(b" 10%\r 20%\r 3", 0)) == [" 10%", " 20%"]


def test_a_secret_is_masked_wherever_a_piece_ends(run: Run) -> None:
    copy = LogCopy(run, Masker(["sk-very-secret"]))
    assert copy.feed(LogBytes(b"key sk-very", 0)) == []
    assert run.log.read_bytes() == b""
    assert copy.feed(LogBytes(b"-secret!\n", 11)) == ["key •••!"]
    assert run.log.read_text() == "key •••!\n"


def test_a_later_launcher_continues_behind_the_last_whole_line(run: Run) -> None:
    first = LogCopy(run, Masker(["secret"]))
    first.feed(LogBytes(b"a secret\nunfinis", 0))
    second = LogCopy(run, Masker(["secret"]))
    assert second.offset == second.seen == len(b"a secret\n")
    second.feed(LogBytes(b"unfinished\n", second.offset))
    assert run.log.read_text() == "a •••\nunfinished\n"


def test_bytes_behind_the_recorded_position_are_dropped(run: Run) -> None:
    LogCopy(run, Masker()).feed(LogBytes(b"one\n", 0))
    with run.log.open("ab") as log:
        log.write(b"torn li")
    assert LogCopy(run, Masker()).offset == 4
    assert run.log.read_bytes() == b"one\n"


def test_a_copy_that_is_shorter_than_recorded_begins_anew(run: Run) -> None:
    LogCopy(run, Masker()).feed(LogBytes(b"one\ntwo\n", 0))
    run.log.write_bytes(b"on")
    assert LogCopy(run, Masker()).offset == 0
    assert run.log.read_bytes() == b""


def test_a_replaced_log_empties_the_copy_and_what_was_pending(run: Run) -> None:
    copy = LogCopy(run, Masker())
    copy.feed(LogBytes(b"one\npend", 0))
    copy.restart()
    assert (copy.offset, copy.seen) == (0, 0)
    assert copy.feed(LogBytes(b"new\n", 0)) == ["new"]
    assert run.log.read_bytes() == b"new\n"


def test_a_log_that_is_replaced_by_nothing_is_empty_for_a_later_launcher(run: Run) -> None:
    copy = LogCopy(run, Masker())
    copy.feed(LogBytes(b"one\n", 0))
    copy.restart()
    assert LogCopy(run, Masker()).offset == 0


def read_all(tail: Tail) -> Iterator[Item]:
    """Everything until the end of the run, or until the connection is given up."""
    while True:
        item = tail.next(20)
        assert item is not None
        yield item
        if isinstance(item, Ended) or (isinstance(item, Lost) and item.final):
            return


def test_the_tail_reads_from_its_offset_to_the_end(start_run: Start) -> None:
    run = start_run("printf 'one\\ntwo\\n'; exit 4")
    tail = Tail(LocalTransport(), run.run, 4)
    items = list(read_all(tail))
    tail.close()
    assert b"".join(item.data for item in items if isinstance(item, LogBytes)) == b"two\n"
    assert items[-1] == Ended("exited", 4)


class Unreliable(LocalTransport):
    """A connection that fails in each of these ways, and works afterwards."""

    def __init__(self, *failures: Exception | str) -> None:
        super().__init__()
        self.failures = list(failures)

    def stream(self, command: Command) -> LocalStream:
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, Exception):
                raise failure
            command = Command(argv=("sh", "-c", failure), label="follow")
        return super().stream(command)


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (HostUnreachable("the box is gone"), "the box is gone"),
        (RuntimeError("a bug"), "RuntimeError: a bug"),
        ("exit 0", "the log stream ended unexpectedly"),
        ("echo 'no python' >&2; exit 9", "the program that follows the log exited with 9: no python"),
        ("echo '{\"x'; echo y", "JSONDecodeError"),
    ],
)
def test_a_lost_connection_is_reported_and_reading_resumes(
    start_run: Start, failure: Exception | str, reason: str
) -> None:
    run = start_run("printf 'one\\ntwo\\n'; exit 4")
    tail = Tail(Unreliable(failure), run.run, 0)
    first, *rest = read_all(tail)
    tail.close()
    assert isinstance(first, Lost)
    assert reason in first.reason
    assert not first.final
    assert b"".join(item.data for item in rest if isinstance(item, LogBytes)) == b"one\ntwo\n"


def test_what_arrived_before_the_loss_is_not_read_again(start_run: Start) -> None:
    run = start_run("printf 'one\\ntwo\\n'; exit 4")
    tail = Tail(Unreliable('printf \'{"log": 4, "at": 0}\\none\\n\'; exit 1'), run.run, 0)
    items = list(read_all(tail))
    tail.close()
    assert [(item.data, item.offset) for item in items if isinstance(item, LogBytes)] == [(b"one\n", 0), (b"two\n", 4)]


def test_a_closed_tail_leaves_the_run_alone(start_run: Start) -> None:
    run = start_run("echo up; exec sleep 600")
    tail = Tail(LocalTransport(), run.run, 0)
    assert tail.next(20) is not None
    tail.close()
    tail.close()
    assert run.pids()
