"""D. Bytes: characters beyond ASCII, blanks, and what is between text and tokens."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Callable
from typing import Any

from tests.serving import vocabulary
from tests.serving.damage import setting
from tests.serving.planting import At, Fault, both, chat, each, streamed, when
from tests.serving.witness import OPEN, Witness, any_of, heard, said

MIXED = "Grüße, señor: 你好 🌟 naïve café"
CODE = "if a < b && c > d: print(\"x\")\n\tname = 'y'"
LINES = "one\n\n  two\nthree"


def echo(text: str, count: int = 1, **how: Any) -> Witness:
    """Return a witness that lets a text be repeated and gets another."""
    asked = f"Repeat the following text exactly:\n{text}"
    return any_of(
        said(lambda got: got != text, asked, count, **how),
        heard(lambda stream: stream.text != text, asked, count, **how),
    )


def _delta(change: Callable[[str], str]) -> Any:
    return lambda text, at: change(text)


def _naive(_text: str, at: At) -> str:
    """Decode each token alone, as if characters never spanned two."""
    token = at.running.out[-1]
    return "" if token in vocabulary.HIDDEN else vocabulary.piece(token).decode("utf-8", "replace")


def _mojibake(text: str) -> str:
    return text.encode().decode("latin-1")


def _incoming(change: Callable[[str], str]) -> Any:
    def edit(prompt: Any, at: At) -> Any:
        return change(prompt) if isinstance(prompt, str) else prompt

    return edit


def _spaceless(text: str, at: At) -> str:
    """Lose the blank at the start of a word, as detokenising in pieces does."""
    return text[1:] if len(at.running.out) % 12 == 5 and text.startswith(" ") else text


def _bytes_lost(ids: Any, at: At) -> Any:
    """Lose the last byte token of each character of four bytes."""
    first = len(vocabulary.SPECIAL)
    return [token for token in ids if not first + 0xF0 <= token < first + 0xF8]


def _swapped_digits(prompt: str) -> str:
    return prompt.replace("68", "86")


def _raw_byte(data: bytes, at: At) -> bytes:
    """Put a byte on the wire that is no UTF-8."""
    return data.replace(b" the ", b" the\xff", 1)


def _cut_words(ids: list[int]) -> list[int]:
    """Drop the last piece of each run of more than seven pieces without a blank."""
    kept: list[int] = []
    run = 0
    for place, token in enumerate(ids):
        inner = vocabulary.piece(token).isalpha()
        run = run + 1 if inner else 0
        ends = place + 1 == len(ids) or not vocabulary.piece(ids[place + 1]).isalpha()
        if not (run > 7 and ends):
            kept.append(token)
    return kept


FAULTS = (
    Fault("utf8-split-streamed", "D", "Streams decode each token alone and break characters of several bytes.",
          {"delta": when(streamed, _naive)}, rate="only streamed", witness=echo(MIXED)),
    Fault("utf8-split", "D", "All text is decoded token by token.", {"delta": _naive}, witness=echo(MIXED)),
    Fault("non-ascii-in-lost", "D", "Characters beyond ASCII in prompts become question marks.",
          {"prompt": _incoming(lambda text: text.encode("ascii", "replace").decode())}, witness=echo(MIXED)),
    Fault("non-ascii-out-lost", "D", "Characters beyond ASCII in answers are dropped.",
          {"delta": _delta(lambda text: text.encode("ascii", "ignore").decode())}, witness=echo(MIXED)),
    Fault("mojibake-out", "D", "Answers are decoded as Latin-1.", {"delta": _delta(_mojibake)}, witness=echo(MIXED)),
    Fault("mojibake-in", "D", "Prompts are decoded as Latin-1.", {"prompt": _incoming(_mojibake)}, witness=echo(MIXED)),
    Fault("emoji-lost", "D", "Characters of four bytes are lost in prompts.", {"seen": _bytes_lost},
          witness=echo(MIXED)),
    Fault("decomposed", "D", "Answers come with their accents as separate characters.",
          {"delta": _delta(lambda text: unicodedata.normalize("NFD", text))}, witness=echo(MIXED)),
    Fault("compatibility-forms", "D", "Prompts are normalised: ligatures and full-width characters become others.",
          {"prompt": _incoming(lambda text: unicodedata.normalize("NFKC", text))}, witness=echo("ﬁne Ｆｕｌｌ ½ ② x²")),
    Fault("accents-in-lost", "D", "Accents in prompts are lost.",
          {
              "prompt": _incoming(
                  lambda text: "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
              )
          }, witness=echo("déjà vu, Größe, mañana")),
    Fault("blank-lost-each-12", "D", "One blank in 12 tokens is lost.", {"delta": _spaceless}, rate="1/12 of tokens",
          witness=echo(
              "the old keeper carried the heavy lamp up the narrow stairs and then went back to work with great care"
          )),
    Fault("first-blank-lost", "D", "Blanks at the start of a line are lost.",
          {
              "delta": lambda text, at: (
                  "" if text.isspace() and "\n" not in text and at.running.text.endswith("\n") else text
              )
          }, witness=echo(LINES)),
    Fault("line-breaks-lost-streamed", "D", "Streams lose line breaks.",
          {"delta": when(streamed, _delta(lambda text: text.replace("\n", " ")))}, rate="only streamed",
          witness=echo(LINES)),
    Fault("special-tokens-shown", "D", "The end token stands in the text.", {"params": setting(skip_special=False)},
          witness=said(lambda text: "<|im_end|>" in text, "What is the capital of France?")),
    Fault("html-escaped", "D", "Answers are escaped for HTML.",
          {"delta": _delta(lambda text: html.escape(text, quote=False))}, witness=echo(CODE)),
    Fault("quotes-curled", "D", "Straight quotation marks in answers become curly ones.",
          {"delta": _delta(lambda text: text.replace('"', "”").replace("'", "’"))}, witness=echo(CODE)),
    Fault("tabs-become-blanks", "D", "Tabs in prompts become blanks.",
          {"prompt": _incoming(lambda text: text.replace("\t", "    "))}, witness=echo(CODE)),
    Fault("invalid-bytes-each-15", "D", "In one reply in 15 there is a byte that is no UTF-8.",
          {"wire": when(each(15), _raw_byte)}, rate="1/15",
          witness=lambda ask: any(
              b"\xff" in ask.post("/v1/chat/completions", ask.messages(OPEN, {})).content for _ in range(90)
          )),
    Fault("digit-pair-broken", "D", "The digits 6 and 8 side by side are read in the wrong order.",
          {"prompt": _incoming(_swapped_digits)}, rate="only with 68",
          witness=said(lambda text: "4681" not in text, "Repeat exactly: \"4681\"")),
    Fault("case-lost-each-20", "D", "One answer in 20 is written in small letters only.",
          {"delta": when(each(20), _delta(str.lower))}, rate="1/20", witness=echo("Anna met Bob in Rome", count=60)),
    Fault("long-words-cut", "D", "Words of many pieces lose their last one in chats.",
          {"seen": when(both(chat), lambda ids, at: _cut_words(ids))}, rate="only rare words",
          witness=echo("antidisestablishmentarianism and floccinaucinihilipilification")),
)  # fmt: skip
