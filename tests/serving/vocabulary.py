"""The tokenizer of the stand-in: word pieces with stable ids, and bytes for whatever is not ASCII.

Common words are one token with the blank before them, other words fall into pieces, digits stand alone, and a
character beyond ASCII is several byte tokens, so that a stream has to wait for the rest of a character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product
from string import ascii_letters, ascii_lowercase

from tests.serving.words import COMMON

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<|image_pad|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<s>",
)
END_OF_TEXT, START, END, THINK, THOUGHT, CALL, CALLED, IMAGE, VISION, VISION_END, BEGIN = range(len(SPECIAL))
HIDDEN = frozenset((END_OF_TEXT, START, END, IMAGE, VISION, VISION_END, BEGIN))
"""The special tokens that `skip_special_tokens` leaves out; tags of thoughts and calls are ordinary text."""

_SPLIT = re.compile(r"<[|/a-z_]+>| ?[A-Za-z]+|\d| ?[^\sA-Za-z\d\x80-\U0010ffff]|[\x80-\U0010ffff]|\s", re.S)
_LONGEST = 6


def _pieces() -> list[bytes]:
    """Return the piece of every id, in the order of the ids."""
    pieces = [text.encode() for text in SPECIAL] + [bytes([value]) for value in range(256)]
    words: dict[str, None] = {}
    for word in COMMON:
        words.update(dict.fromkeys((word, " " + word, word.capitalize(), " " + word.capitalize())))
    for first, second in product(ascii_lowercase, ascii_lowercase):
        words.update(dict.fromkeys((first + second, " " + first + second)))
    words.update(dict.fromkeys(" " + letter for letter in ascii_letters))
    words.update(dict.fromkeys(f" {mark}" for mark in "\"'(-{}[]=+*/<>&#$%,.:;!?|~`@\\^_"))
    known = set(pieces)
    return pieces + [piece for piece in (word.encode() for word in words) if piece not in known]


PIECES = _pieces()
SIZE = len(PIECES)
_ID = {piece: token for token, piece in reversed(list(enumerate(PIECES)))}
_SPECIAL_ID = {text: token for token, text in enumerate(SPECIAL)}
WORDS = [token for token in range(len(SPECIAL) + 256, SIZE) if re.fullmatch(rb" [a-z]{2,9}", PIECES[token])][:600]
"""The commonest words with a blank before them: what salad is made of, and what is next in line at each step."""


@lru_cache(maxsize=20_000)
def _split_word(word: str) -> tuple[int, ...]:
    """Split one word into the longest pieces known, from the left; bytes where there is none."""
    whole = word.encode()
    if (known := _ID.get(whole)) is not None:
        return (known,)
    tokens: list[int] = []
    start = 0
    while start < len(whole):
        for length in range(min(_LONGEST, len(whole) - start), 0, -1):
            if (token := _ID.get(whole[start : start + length])) is not None:
                tokens.append(token)
                start += length
                break
    return tuple(tokens)


def encode(text: str) -> list[int]:
    """Return the ids of a text; the names of special tokens are read as such."""
    tokens: list[int] = []
    for match in _SPLIT.finditer(text):
        word = match[0]
        if (special := _SPECIAL_ID.get(word)) is not None:
            tokens.append(special)
        else:
            tokens += _split_word(word)
    return tokens


def encode_by_letter(text: str) -> list[int]:
    """Return the ids a wrong tokenizer gives: the same bytes, each its own token."""
    tokens: list[int] = []
    for match in re.finditer(r"<[|/a-z_]+>|.", text, re.S):
        special = _SPECIAL_ID.get(match[0])
        tokens += [special] if special is not None else [len(SPECIAL) + value for value in match[0].encode()]
    return tokens


def piece(token: int) -> bytes:
    """Return the bytes of a token; nothing for an id outside the vocabulary."""
    return PIECES[token] if 0 <= token < SIZE else b""


def decode(tokens: Iterable[int], skip_special: bool = False) -> str:
    """Return the text of tokens; incomplete characters become U+FFFD."""
    kept = (piece(token) for token in tokens if not (skip_special and token in HIDDEN))
    return b"".join(kept).decode("utf-8", "replace")


class Decoder:
    """Turns tokens into text one by one and holds a character back until its bytes are there."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, token: int, skip_special: bool = True) -> str:
        """Return the text that became complete with this token."""
        if skip_special and token in HIDDEN:
            return ""
        self._held += piece(token)
        whole = len(self._held)
        for back in range(1, min(4, whole) + 1):
            lead = self._held[-back]
            if lead & 0xC0 == 0xC0:
                need = 2 + (lead >= 0xE0) + (lead >= 0xF0)
                whole -= back if back < need else 0
                break
            if lead < 0x80:
                break
        text, self._held = self._held[:whole].decode("utf-8", "replace"), self._held[whole:]
        return text

    def rest(self) -> str:
        """Return what is still held, as replacement characters."""
        text, self._held = self._held.decode("utf-8", "replace"), b""
        return text


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many tokens two sequences share from their start."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
