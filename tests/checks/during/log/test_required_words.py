import re

import pytest

from checks.during.log.required_words import ORDINARY, best, cover, requirements


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"when using --mamba-(?:scheduler|radix-cache)-strategy", {"when using --mamba-"}),
        (r"CUDA error: (?:invalid device function|no kernel image)", {"invalid device function", "no kernel image"}),
        (r"(?:Rank|rank) \d+ scheduler (?:died|is dead)?", {" scheduler "}),
        (r"\d+ .* [a-z]+", set()),
        (r"[Cc]uda graph", {"uda graph"}),
    ],
)  # fmt: skip
def test_the_longest_certain_text_is_required(pattern: str, words: set[str]) -> None:
    assert best(pattern) == words


def test_optional_parts_are_not_required() -> None:
    assert requirements(r"(?:maybe this)?x*(?:or that|)") == ()


def test_words_of_ordinary_lines_are_avoided() -> None:
    assert best(r"Prefill batch.*exploded") == {"exploded"}
    assert not set(cover([frozenset({"token usage: "})])) & {"token", "usage", "token usage: "}


def test_every_literal_contains_a_chosen_word() -> None:
    needs = [
        best(p) for p in (r"Cannot find any model weights", r"Cannot load (?:x|weights now)", r"q8", "not supported")
    ]
    words = cover(needs)
    assert all(any(word in literal for word in words) for need in needs for literal in need)


def test_a_word_of_every_matching_line_is_required() -> None:
    text = "RuntimeError: Rank 3 scheduler died during initialization (exit code: -9)"
    for pattern in (
        r"Rank \d+ scheduler (?:died|dead)",
        r"exit code: -\d+",
        r"(?:RANK|Rank) \d",
        r"^Runtime(?:Error|Warning)",
    ):
        assert re.search(pattern, text) and any(word in text for word in best(pattern))


def test_ordinary_text_covers_the_lines_of_a_busy_server() -> None:
    assert "Decode batch" in ORDINARY and "HTTP/1.1" in ORDINARY
