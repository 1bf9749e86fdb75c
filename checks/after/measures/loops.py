"""Loops in a text: a unit of any length repeated up to its end, and sentences that come again and again.

Exact and linear-time (the failure function of Knuth, Morris and Pratt on the reversed text), so a period may be one
character or several paragraphs. Whether a loop is garbage depends on what repeats: see `_guilty`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

LONGEST = 60_000  # characters looked at, from the end: a loop is always there


class Loop(Struct, frozen=True):
    """`unit` comes `times` times (the last one possibly cut short); `share` is the part of the text that it covers."""

    unit: str
    times: float
    share: float


def find_loop(text: str) -> Loop | None:
    """The loop in which a text ends, if any that counts as garbage; blanks are compared as one blank."""
    words = re.sub(r"\s+", " ", text).strip()[-LONGEST:]
    if not words:
        return None
    guilty = next((loop for loop in _tail_loops(words) if _guilty(loop)), None)
    return guilty or _inner_loop(words)


def repeated_sentences(text: str) -> tuple[int, str] | None:
    """(times, sentence) when one sentence of five or more words makes up most of a text; else None.

    Finds loops that drift: the same sentences in another order, or with a word changed between the repeats.
    """
    parts = [part.strip().lower() for part in re.split(r"(?<=[.!?。！？])\s*|\n+", text)]
    sentences = [part for part in parts if _is_sentence(part)]
    if len(sentences) >= 4:
        sentence, count = Counter(sentences).most_common(1)[0]
        if count >= 4 and count * len(sentence) * 2 >= len(text):
            return count, sentence
    return _poor_in_phrases(text)


def _is_sentence(part: str) -> bool:
    words = set(re.findall(r"[^\W\d_]{2,}", part))
    return len(words) >= 4 or (len(part) >= 10 and not part.isascii() and bool(words))


def _poor_in_phrases(text: str) -> tuple[int, str] | None:
    # words that stand free: names inside code repeat for good reasons
    words = re.findall(r"(?<!\S)[^\W\d_]+(?=[.,;:!?]?(?:\s|\Z))", text.lower())
    if len(words) < 60:
        return None
    grams = Counter(zip(words, words[1:], words[2:], words[3:], strict=False))
    if len(grams) * 6 > len(words):
        return None
    gram, count = grams.most_common(1)[0]
    return count, " ".join(gram)


def _tail_loops(text: str) -> list[Loop]:
    """Loops at the end of the text, the one that reaches furthest back first."""
    backwards = text[::-1]
    failure = _failure(backwards)
    found: dict[int, int] = {}  # period → longest stretch
    for index, border in enumerate(failure):
        length, period = index + 1, index + 1 - border
        if length >= 2 * period:
            found[period] = max(found.get(period, 0), length)
    loops = []
    for period, length in found.items():
        unit = text[len(text) - length :][:period]
        loops.append(Loop(unit=unit, times=length / period, share=length / len(text)))
    return sorted(loops, key=lambda loop: -loop.share)


def _inner_loop(text: str) -> Loop | None:
    """A word or short phrase repeated many times in the middle: a loop from which the model recovered."""
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


def _guilty(loop: Loop) -> bool:
    """Whether a repetition is garbage. Letters repeat rarely in good text; digits and signs repeat in every table."""
    size, times, whole = len(loop.unit), loop.times, loop.share >= 0.9
    length, letters = size * times, sum(1 for character in loop.unit if character.isalpha())
    if not letters:
        # a row of zeros, a table without content: only when there is nothing else, or no end of it
        return (whole and times >= 8 and length >= 16) or (times >= 20 and length >= 1200)
    if whole:
        # "true true true" ends without its blank: 2.9 times
        return (times >= 2.8 and length >= 9) or (times >= 2.5 and length >= 80)
    if size >= 200:
        return times >= 2 and letters * 4 >= size
    # refrains and rows of equal cells end; a loop does not
    least = 3 if size >= 40 else 4 if size >= 20 else 6
    return times >= least and length >= (110 if size >= 20 else 60) and letters * 3 >= size
