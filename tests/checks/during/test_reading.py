"""One reading of a log: lines, incidents, phases and facts together, and the cut into its starts."""

from __future__ import annotations

from typing import Any

import pytest

from checks.during.log import phases
from checks.during.log.scan import scan
from checks.during.log.word_search import Words
from checks.during.reading import Reading, read, starts_of
from checks.during.signature_index import Index

AT = "[2026-11-29 15:25:0{}] "
ARGS = AT.format(1) + "server_args=ServerArgs(model_path='/m/Qwen3-8B', tp_size={}, nnodes=1)\n"
LOADING = AT.format(2) + "Load weight begin. avail mem=1 GB\n"
READY = AT.format(3) + "The server is fired up and ready to roll!\n"
TRACE = 'Traceback (most recent call last):\n  File "/a/sglang/srt/x.py", line 1, in f\nValueError: {}\n'
DIED = AT.format(9) + "Received sigquit from a child process. It usually means the child failed.\n"
NOTHING = Words(())


@pytest.fixture(scope="module")
def index() -> Index:
    """No patterns, only the phases that ship."""
    return Index(rules=(), needs={}, literals=NOTHING, words=NOTHING, phases=phases.load(), advices={})


def reading(index: Index, log: str, **known: Any) -> Reading:
    return read(scan([log.encode()], index.words), index, known)


def test_a_reading_contains_all_that_a_log_shows(index: Index) -> None:
    found = reading(index, ARGS.format(4) + LOADING + TRACE.format("bad"))
    assert [item.kind for item in found.incidents] == ["line", "line", "traceback"]
    assert [(item.phase, item.line) for item in found.milestones] == [("distributed", 1), ("weights", 2)]
    assert (found.last_phase, found.facts["log.phase"], found.is_foreign) == ("weights", "weights", False)
    assert (found.facts["flag.tp-size"], found.facts["model.name"]) == ("4", "Qwen3-8B")
    assert found.scanned.total_lines == 5
    assert found.index is index


def test_known_facts_take_precedence_over_the_log(index: Index) -> None:
    log = scan([ARGS.format(4).encode()], index.words)
    assert read(log, index, {"flags": {"tp-size": "2"}}).facts["flag.tp-size"] == "2"
    assert read(log, index, {"engine_version": "0.5.9"}, "0.5.14").facts["engine.version"] == "0.5.14"
    assert read(log, index).facts["engine.version"] is None


@pytest.mark.parametrize(
    ("log", "foreign"),
    [
        ("", True),
        ("hello\nworld\n", True),
        (TRACE.format("of some other program"), True),
        (AT.format(1) + "hello\n", False),
        ("'python -m sglang.launch_server' is still supported\nThe server is fired up and ready to roll!\n", False),
    ],
)
def test_a_log_is_foreign_if_no_line_looks_like_sglang(index: Index, log: str, foreign: bool) -> None:
    found = reading(index, log)
    assert found.is_foreign is foreign
    assert found.last_phase == "" or not foreign


def test_one_start_is_the_reading_itself(index: Index) -> None:
    found = reading(index, ARGS.format(1) + READY)
    assert starts_of(found) == (found,)


def test_each_start_is_read_by_itself(index: Index) -> None:
    first = ARGS.format(4) + LOADING + READY + TRACE.format("first") + DIED
    found = reading(index, first + ARGS.format(4) + LOADING + TRACE.format("second") + DIED)
    one, two = starts_of(found)
    assert [line.number for line in (*one.scanned.lines, *two.scanned.lines)] == list(range(1, 14))
    assert (one.scanned.lines[0].number, two.scanned.lines[0].number) == (1, 8)
    for start, message, phase in ((one, "first", "serving"), (two, "second", "weights")):
        [trace] = [item for item in start.incidents if item.kind == "traceback"]
        assert trace.chain[0].message == message
        assert start.incidents[0].line == start.scanned.lines[0].number
        assert start.last_phase == start.facts["log.phase"] == phase
    assert (one.facts["flag.tp-size"], one.index) == ("4", index)


def test_of_several_starts_the_facts_are_those_of_the_last(index: Index) -> None:
    found = reading(index, ARGS.format(2) + LOADING + READY + DIED + ARGS.format(8) + LOADING)
    assert [start.facts["flag.tp-size"] for start in starts_of(found)] == ["8", "8"]
    assert found.facts["log.phase"] == "weights"
