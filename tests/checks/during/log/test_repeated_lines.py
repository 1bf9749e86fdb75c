from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from checks.during.log import repeated_lines
from checks.during.log.repeated_lines import SAME_LIMIT, ShapeFinder

DIGITS = b"0123456789"
NOISE = b"".join(b"[2026-11-29 15:16:%02d] Error %d of many\n" % (row % 60, row) for row in range(20_000))


def needle(word: bytes) -> repeated_lines.Find:
    return lambda data, start, end: data.find(word, start, end)


def hits(finder: ShapeFinder, data: bytes) -> list[bytes]:
    """Return the lines that a scanner would get: after each hit, it continues after the hit's line."""
    found, start = [], 0
    while (place := finder(data, start, len(data))) >= 0:
        first = data.rfind(b"\n", 0, place) + 1
        start = data.find(b"\n", place) + 1 or len(data)
        found.append(data[first:start])
    return found


def test_a_dense_log_shows_some_lines_of_a_shape_and_counts_the_rest() -> None:
    finder = ShapeFinder(needle(b"Error"))
    shown = hits(finder, NOISE)
    assert len(shown) + finder.dropped == 20_000
    assert SAME_LIMIT <= len(shown) < 10_000


def test_a_line_of_a_new_shape_is_found_among_known_ones() -> None:
    fatal = b"[2026-11-29 15:17:00] Error: something else\n"
    assert hits(ShapeFinder(needle(b"Error")), NOISE + fatal + NOISE).count(fatal) == 1


def test_every_hit_of_a_sparse_log_is_found() -> None:
    quiet = b"[2026-11-29 15:16:18] all is well\n" * 4_000
    data = (quiet + b"Error 7 again\n") * 40
    finder = ShapeFinder(needle(b"Error"))
    assert len(hits(finder, data)) == 40
    assert finder.dropped == 0


def test_another_chunk_in_the_same_memory_is_looked_at_again() -> None:
    finder = ShapeFinder(needle(b"Error"))
    assert hits(finder, b"Error a\n") == hits(finder, b"Error a\n") == [b"Error a\n"]


def test_lines_that_are_all_new_do_not_stay_in_the_slow_way() -> None:
    words = [
        bytes([97 + place % 26, 97 + place // 26 % 26, 97 + place // 676 % 26, 97 + place // 17_576])
        for place in range(60_000)
    ]
    data = b"".join(b"Error %s%s is unlike all others\n" % (word, word) for word in words)
    assert len(hits(ShapeFinder(needle(b"Error")), data)) == len(words)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([b"Error %d\n", b"fine %d\n", b"Error x%d\n", b"\n", b"ok Error"]), max_size=60),
    st.booleans(),
)
def test_of_each_shape_the_first_hits_are_shown(rows: list[bytes], dense: bool) -> None:
    data = b"".join(row % number if b"%d" in row else row for number, row in enumerate(rows * 3))
    finder = ShapeFinder(needle(b"Error"))
    finder._dense = dense
    shown = Counter(line.translate(None, DIGITS) for line in hits(finder, data))
    for shape, count in Counter(
        line.translate(None, DIGITS) for line in data.splitlines(True) if b"Error" in line
    ).items():
        assert shown[shape] >= min(count, SAME_LIMIT)
