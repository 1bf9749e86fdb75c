"""Both word searches agree with a plain `find`."""

from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.during.log import word_search
from checks.during.log.word_search import Words

LETTERS = st.text(alphabet="abc \n", max_size=400)
WORDS = st.lists(st.text(alphabet="abc ", min_size=1, max_size=4), min_size=1, max_size=6, unique=True)


def hit_lines(find: word_search.Finder, data: bytes) -> list[int]:
    """Numbers of the lines on which a search that starts again behind each hit's line stops."""
    starts = [0] + [place + 1 for place, byte in enumerate(data) if byte == 10]
    found, at = [], 0
    while (place := find(data, at, len(data))) >= 0:
        found.append(bisect_right(starts, place) - 1)
        at = starts[found[-1] + 1] if found[-1] + 1 < len(starts) else len(data)
    return found


@given(LETTERS, WORDS, st.sampled_from([8, 64, 65_536]))
def test_exactly_the_lines_that_contain_a_word_are_found(text: str, words: list[str], segment: int) -> None:
    expected = [row for row, line in enumerate(text.split("\n")) if any(word in line for word in words)]
    needles = [word.encode() for word in words]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_search, "_SEGMENT_BYTES", segment)
        patch.setattr(word_search, "_PIECE_BYTES", segment // 4)
        assert hit_lines(word_search.finder(Words(tuple(words))), text.encode()) == expected
        assert hit_lines(word_search.PlainFinder(needles), text.encode()) == expected


@given(LETTERS, WORDS)
def test_every_occurrence_is_returned_once_with_or_without_hyperscan(text: str, words: list[str]) -> None:
    def rows(found: object) -> set[tuple[int, int]]:
        return {(word, text.count("\n", 0, place)) for word, place in found}  # type: ignore[attr-defined]

    expected = {
        (index, row) for index, word in enumerate(words) for row, line in enumerate(text.split("\n")) if word in line
    }
    data = text.encode()
    assert rows(word_search.occurrences(Words(tuple(words)), data)) == expected
    assert rows(word_search._one_by_one(words, data)) == expected
    inside = ((word, place) for word, place in word_search.occurrences(Words(tuple(words)), data))
    assert all(data[: place + 1].endswith(words[word].encode()) for word, place in inside)


def test_threads_may_search_at_the_same_time() -> None:
    data = b"one line without it\n" * 20_000 + b"here: abc\n"
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: list(word_search.occurrences(Words(("abc", "xyz")), data)), range(64)))
        places = set(threads.map(lambda _: word_search.finder(Words(("abc", "xyz")))(data, 0, len(data)), range(64)))
    assert all(item == found[0] for item in found) and len(found[0]) == 1
    assert len(places) == 1


def test_prepared_words_find_the_same_and_what_does_not_fit_is_compiled_again() -> None:
    data = b"a line\nhere: abc and xyz\n"
    ready = word_search.prepared(("abc", "xyz"))
    assert ready.compiled
    expected = list(word_search.occurrences(Words(ready.texts), data))
    of_another_release = ready.compiled[:4] + b"\x07" + ready.compiled[5:]
    for compiled in (ready.compiled, of_another_release, ready.compiled[:40], b"junk"):
        assert list(word_search.occurrences(Words(ready.texts, compiled), data)) == expected
