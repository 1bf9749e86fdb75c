"""Find loops in a text: a unit of any length repeated up to the end, and sentences that keep recurring.

Exact and linear-time (the failure function of Knuth, Morris and Pratt on the reversed text), so a period may be one
character or several paragraphs. Whether a loop is garbage depends on what repeats: see `_is_garbage`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

LONGEST = 60_000  # characters examined, counted from the end, where a loop always is


class Loop(Struct, frozen=True):
    """`unit` repeats `times` times, the last one possibly cut short; `share` is the part of the text that it covers."""

    unit: str
    times: float
    share: float


def find_loop(text: str) -> Loop | None:
    """Return the garbage loop at the end of a text, or else inside it; None without one. Whitespace is normalised."""
    words = re.sub(r"\s+", " ", text).strip()[-LONGEST:]
    if not words:
        return None
    tail = next((loop for loop in _tail_loops(words) if _is_garbage(loop)), None)
    return tail or _inner_loop(words)


def repeated_sentences(text: str) -> tuple[int, str] | None:
    """Return (times, sentence) when one sentence of four or more words makes up most of a text; else None.

    Finds loops that drift: the same sentences in another order, or with a word changed between the repeats.
    """
    parts = [part.strip().lower() for part in re.split(r"(?<=[.!?。！？])\s*|\n+", text)]
    sentences = [part for part in parts if _is_sentence(part)]
    if len(sentences) >= 4:
        sentence, count = Counter(sentences).most_common(1)[0]
        if count >= 4 and count * len(sentence) * 2 >= len(text):
            return count, sentence
    return _few_phrases(text)


def _is_sentence(part: str) -> bool:
    words = set(re.findall(r"[^\W\d_]{2,}", part))
    return len(words) >= 4 or (len(part) >= 10 and not part.isascii() and bool(words))


def _few_phrases(text: str) -> tuple[int, str] | None:
    # only words surrounded by whitespace: identifiers inside code repeat legitimately
    words = re.findall(r"(?<!\S)[^\W\d_]+(?=[.,;:!?]?(?:\s|\Z))", text.lower())
    if len(words) < 60:
        return None
    grams = Counter(zip(words, words[1:], words[2:], words[3:], strict=False))
    if len(grams) * 6 > len(words):
        return None
    gram, count = grams.most_common(1)[0]
    return count, " ".join(gram)


def _tail_loops(text: str) -> list[Loop]:
    """Return the loops at the end of the text, the one that reaches furthest back first."""
    backwards = text[::-1]
    failure = _failure(backwards)
    longest: dict[int, int] = {}  # period → longest stretch
    for index, border in enumerate(failure):
        length, period = index + 1, index + 1 - border
        if length >= 2 * period:
            longest[period] = max(longest.get(period, 0), length)
    loops = []
    for period, length in longest.items():
        unit = text[len(text) - length :][:period]
        loops.append(Loop(unit=unit, times=length / period, share=length / len(text)))
    return sorted(loops, key=lambda loop: -loop.share)


def _inner_loop(text: str) -> Loop | None:
    """Return a word or short phrase repeated many times in the middle: a loop from which the model recovered."""
    match = re.search(r"(?<!\w)((?:[^\W\d_]+\W{1,2}){1,4}?)\1{9,}", text)
    if match is None:
        return None
    unit, length = match[1], len(match[0])
    return Loop(unit=unit, times=length / len(unit), share=length / len(text))


def _failure(text: Sequence[str]) -> list[int]:
    failure, border = [0] * len(text), 0
    for index in range(1, len(text)):
        while border and text[index] != text[border]:
            border = failure[border - 1]
        border += text[index] == text[border]
        failure[index] = border
    return failure


def _is_garbage(loop: Loop) -> bool:
    """Return whether a loop is garbage. Letters seldom repeat in good text; digits and signs repeat in every table."""
    size, times, whole = len(loop.unit), loop.times, loop.share >= 0.9
    length, letters = size * times, sum(1 for character in loop.unit if character.isalpha())
    if not letters:
        # a row of zeros, a table without content: garbage only when it is the whole text or very long
        return (whole and times >= 8 and length >= 16) or (times >= 20 and length >= 1200)
    if whole:
        # "true true true" ends without its space: 2.9 times
        return (times >= 2.8 and length >= 9) or (times >= 2.5 and length >= 80)
    if size >= 200:
        return times >= 2 and letters * 4 >= size
    # refrains and rows of equal cells are short; a loop goes on
    least = 3 if size >= 40 else 4 if size >= 20 else 6
    return times >= least and length >= (110 if size >= 20 else 60) and letters * 3 >= size
