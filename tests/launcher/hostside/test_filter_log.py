"""Lines that a diagnosis needs are selected from a log by the host's own grep, with their numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launcher.hostside import filter_log

Filtered = tuple[dict[int, bytes], dict[str, Any]]
Select = Callable[..., Filtered]
STAMP = b"[2026-11-29 15:16:18] "


@pytest.fixture
def select(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Select:
    """Run the program on a log: select(content, edge=…) returns the lines by number, and the totals."""

    def run(content: bytes | None, path: Path = tmp_path / "server.log", **changes: object) -> Filtered:
        if content is not None:
            path.write_bytes(content)
        limits = {"lead": 1, "follow": 2, "same": 20, "edge": 0, "most": 1 << 20, "words": ["Error"]}
        filter_log.main({"path": str(path), **limits, **changes})
        *rows, end = capfdbinary.readouterr().out.rstrip(b"\n").split(b"\n")
        pairs = (row.partition(b":") for row in rows)
        return {int(number): text for number, _, text in pairs}, json.loads(end.removeprefix(b"END "))

    return run


def stamped(*texts: bytes) -> bytes:
    return b"".join(STAMP + text + b"\n" for text in texts)


def test_a_hit_brings_the_lines_around_it_and_no_others(select: Select) -> None:
    lines, end = select(stamped(b"a", b"b", b"Error: x") + b"  frame 1\n  frame 2\n  frame 3\n" + stamped(b"c"))
    assert lines == {2: STAMP + b"b", 3: STAMP + b"Error: x", 4: b"  frame 1", 5: b"  frame 2"}
    assert (end["lines"], end["dropped"], end["notes"]) == (7, 0, [])


def test_the_next_record_ends_what_follows_a_hit(select: Select) -> None:
    lines, _ = select(stamped(b"Error: x") + b"  frame\n" + stamped(b"fine", b"fine"))
    assert list(lines) == [1, 2]


def test_the_beginning_and_the_end_are_selected_without_a_hit(select: Select) -> None:
    content = b"".join(b"line %02d\n" % number for number in range(1, 31))
    lines, end = select(content, edge=20)
    assert list(lines) == [1, 2, 29, 30]
    assert end["bytes"] == len(content)


def test_a_log_smaller_than_its_edges_is_selected_once_and_whole(select: Select) -> None:
    lines, end = select(b"one\nError two\nthree", edge=400)
    assert lines == {1: b"one", 2: b"Error two", 3: b"three"}
    assert end["lines"] == 3


@pytest.mark.parametrize("edge", [0, 400])
def test_an_empty_log_has_no_lines(select: Select, edge: int) -> None:
    lines, end = select(b"", edge=edge)
    assert b"".join(lines.values()) == b""
    assert (end["lines"], end["bytes"]) == (0, 0)


def test_bytes_that_are_not_text_are_kept(select: Select) -> None:
    lines, _ = select(b"\0\xff Error \x1b[31m\xe9\r\n")
    assert lines == {1: b"\0\xff Error \x1b[31m\xe9\r"}


def test_words_are_taken_literally(select: Select) -> None:
    lines, _ = select("a.c\nabc\n-e x\n(é|\n".encode(), words=["a.c", "-e", "(é|"], lead=0, follow=0)
    assert list(lines) == [1, 3, 4]


def test_a_line_of_any_length_is_cut(select: Select) -> None:
    lines, _ = select(b"Error" + b"x" * (filter_log.MOST_CHARS + 9) + b"\nend\n")
    assert len(lines[1]) == filter_log.MOST_CHARS


def test_equal_hits_differ_in_their_numbers_alone(select: Select) -> None:
    lines, end = select(stamped(b"Error 1", b"Error 22", b"Error three"), same=1, lead=0)
    assert list(lines) == [1, 3]
    assert end["dropped"] == 1


def test_a_path_that_looks_like_an_option_is_read(
    select: Select, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(select(b"Error\n", path=Path("-v"))[0]) == [1]


def test_a_missing_log_is_named_with_its_reason(select: Select, tmp_path: Path) -> None:
    assert select(None)[1] == {"missing": "No such file or directory"}
    assert select(None, path=tmp_path)[1] == {"missing": "Is a directory"}


def test_a_host_without_grep_sends_both_ends_and_says_so(
    select: Select, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    lines, end = select(b"one\nError two\nthree\nfour\n", edge=6)
    assert list(lines) == [1, 4]
    assert "no grep" in end["notes"][0]
