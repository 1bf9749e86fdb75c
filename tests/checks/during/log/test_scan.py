import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks.during.log import scan, word_search
from checks.during.log.scan import Scanned
from checks.during.log.word_search import Words
from tests.support.paths import CORPUS

WORDS = Words(("Traceback (most", '  File "', "Error", "server_args=", "SIGTERM", "Killed", "Capture"))
ORDINARY = (
    b"[2026-11-29 15:16:18 TP0] Decode batch, #running-req: 2, #token: 25, cuda graph: True, #queue-req: 0\n"
    b'[2026-11-29 15:16:18] INFO:     127.0.0.1:40000 - "POST /generate HTTP/1.1" 200 OK\n'
)


def corpus() -> list[Path]:
    return sorted(path for path in CORPUS.glob("*/*") if path.name.endswith((".log", ".log.gz")))


def data_of(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[place : place + size] for place in range(0, len(data), size)]


def plain(words: Words) -> word_search.PlainFinder:
    return word_search.PlainFinder([word.encode() for word in words.texts])


@pytest.mark.parametrize("path", corpus(), ids=lambda path: path.name)
def test_kept_lines_carry_the_numbers_of_an_editor(path: Path) -> None:
    data = data_of(path)
    rows = data.decode(errors="replace").split("\n")
    found = scan.scan([data], WORDS)
    assert found.total_lines == len(rows) - data.endswith(b"\n")
    assert all(line.text[-20:].strip() in rows[line.number - 1] for line in found.lines if "\x1b" not in line.text)


@pytest.mark.parametrize("path", corpus(), ids=lambda path: path.name)
def test_chunks_may_be_cut_anywhere(path: Path) -> None:
    data = data_of(path)
    whole = {line.number for line in scan.scan([data], WORDS).lines}
    for size in (1, 777, 65_536) if len(data) < 6000 else (777, 65_536):
        assert whole <= {line.number for line in scan.scan(pieces(data, size), WORDS).lines} | {0}


@pytest.mark.parametrize("path", corpus(), ids=lambda path: path.name)
def test_the_standard_library_finds_what_hyperscan_finds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = data_of(path)
    expected = scan.scan([data], WORDS)
    monkeypatch.setattr(scan, "finder", plain)
    assert scan.scan([data], WORDS) == expected


def noisy(before: int, after: int, block: bytes) -> Scanned:
    return scan.scan(pieces(ORDINARY * before + block + ORDINARY * after, 1 << 20), WORDS)


def test_of_a_long_log_only_the_failure_and_both_ends_are_kept() -> None:
    trace = (
        b"[2026-11-29 15:16:19 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        b'  File "a.py", line 1, in f\nValueError: x\nmore text\n'
    )
    found = noisy(40_000, 40_000, trace)
    kept = [line.text for line in found.lines if line.number in range(80_001, 80_005)]
    assert kept[0].startswith("Scheduler hit") and kept[-1] == "more text"
    assert len(found.lines) < 1200
    assert found.total_lines == 160_004


def test_a_message_without_words_is_kept_with_its_record() -> None:
    found = noisy(1000, 1000, b"[2026-11-29 15:16:19] Error while loading:\n  first\n\n  second\n")
    texts = [line.text for line in found.lines]
    assert {"  first", "  second"} <= set(texts)


def test_equal_failures_are_kept_a_few_times_only() -> None:
    found = scan.scan([b"[2026-11-29 15:16:19] Error in request 123\n" + ORDINARY] * 20_000, WORDS)
    assert found.dropped_regions > 19_000
    assert len(found.lines) < 2000


def test_of_different_failures_the_first_and_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "KEEP_BYTES", 20_000)
    names = [chr(97 + n // 676 % 26) + chr(97 + n // 26 % 26) + chr(97 + n % 26) for n in range(8000)]
    found = scan.scan([f"[2026-11-29 15:16:19] Error in {name}\n".encode() + ORDINARY for name in names], WORDS)
    texts = {line.text for line in found.lines}
    assert {"Error in aaa", "Error in aab", f"Error in {names[-300]}"} <= texts
    assert "Error in fwq" not in texts and found.dropped_regions > 0


def test_an_endless_line_is_read_in_flat_memory() -> None:
    found = scan.scan([b"x" * (1 << 20)] * 100 + [b"\nValueError: boom\n"], WORDS)
    assert found.total_lines == 2
    assert found.lines[-1].text == "ValueError: boom"
    assert sum(len(line.text) for line in found.lines) < 1 << 21


def test_a_bar_without_end_keeps_the_record_in_it() -> None:
    bar = b"Loading: 7% Completed | 7/99 [00:01<00:09,  1.0it/s]\r" * 100_000
    found = scan.scan(pieces(bar + b"[2026-11-29 15:16:19 TP0] Error: boom\n", 1 << 20), WORDS)
    assert any(line.text == "Error: boom" for line in found.lines)


def test_nothing_is_nothing() -> None:
    assert scan.scan([], WORDS) == Scanned(lines=(), total_lines=0, total_bytes=0, dropped_regions=0)


def test_of_a_log_that_is_nothing_but_new_hits_both_ends_are_kept_with_their_numbers() -> None:
    def word(number: int) -> str:  # no two lines are equal but for their digits
        return "".join(chr(97 + number // 26**place % 26) for place in range(5))

    rows = [f"[2026-11-29 15:16:19] Error in {word(number)} {'x' * 100}" for number in range(60_000)]
    data = "".join(f"{row}\n" for row in rows).encode()
    found = scan.scan(pieces(data, 1 << 20), WORDS)
    assert (found.total_lines, found.total_bytes) == (60_000, len(data))
    assert found.dropped_regions > 0
    assert all(f"[2026-11-29 15:16:19] {line.text}" == rows[line.number - 1] for line in found.lines)
    assert {line.number for line in found.lines} >= {1, 10_000, 50_000, 60_000}
    assert sum(len(line.text) for line in found.lines) < 3 * scan.KEEP_BYTES


@settings(max_examples=60)
@given(
    st.lists(st.binary(max_size=300) | st.sampled_from([b"Error\n", b"\n", b"\r", ORDINARY, b"[2026-"]), max_size=30)
)
def test_any_bytes_in_any_pieces_are_read(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    found = scan.scan(chunks, WORDS)
    assert found.total_bytes == len(whole)
    assert found.total_lines == whole.count(b"\n") + (bool(whole) and not whole.endswith(b"\n"))
    assert all(1 <= line.number <= max(found.total_lines, 1) for line in found.lines)


def test_the_last_of_many_equal_starts_keeps_its_lines() -> None:
    start = (
        b"[2026-11-29 15:16:00] server_args=ServerArgs(model_path='m')\n"
        b"[2026-11-29 15:16:01 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        b'  File "a.py", line 1, in f\nValueError: x\n'
    )
    found = scan.scan(pieces(start * 900 + ORDINARY * 300, 50_000), WORDS)
    rows = (start * 900).count(b"\n")
    kept = {line.number for line in found.lines}
    assert found.dropped_regions and set(range(rows - 3, rows + 1)) <= kept
    assert sum("server_args=" in line.text for line in found.lines) == 900
