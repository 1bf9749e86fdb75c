"""Detect garbage output: token-0 runs ("!!!!"), loops of any period, empty text, broken bytes, wrong script, NaN.

Judges one output and knows nothing of the prompt except its script. It must not report code, tables, separators,
refrains, base64 or number sequences: the corpus in tests/data/good_outputs sets the thresholds.
`loops` finds the loops; `probes.basic` judges the log-probabilities of a whole prompt.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from checks.after.measures.loops import Loop, find_loop, repeated_sentences

SEPARATORS = frozenset("-=_*#~.·─━═│┃█ \t\n")
# Glyphs that byte-level and SentencePiece vocabularies use for spaces and newlines: visible only when decoding broke.
_RAW_TOKENS = re.compile(r"[ĠĊ]|▁(?=\w)|<0x[0-9A-F]{2}>")
_SPECIAL = re.compile(
    r"<\|(?:im_start|im_end|endoftext|eot_id|end|start_header_id|begin_of_text|eom_id)\|>|</?s>|<pad>|<unk>|\[PAD\]"
)
# UTF-8 decoded as Latin-1 or cp1252: "Ã©", "â€™", "ðŸ", and the C1 control characters that result from it
_MOJIBAKE = re.compile(
    r"Ã[\u0080-\u00bf]|Â[\u0080-\u00bf]|â€[\u0080-\uffff]?|ðŸ|ï»¿|[ÐÑ][\u0080-\u00bf]|[\u0080-\u009f]"
)
_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARABIC", "HEBREW", "DEVANAGARI", "THAI", "HANGUL", "TAMIL", "BENGALI",
            "GEORGIAN", "ARMENIAN", "TELUGU", "ETHIOPIC", "KHMER")  # fmt: skip


class Problem(Struct, frozen=True, kw_only=True):
    """One defect of an output. `kind` is a stable slug, `sample` the part of the output that shows the defect."""

    kind: str
    message: str
    sample: str = ""


def judge_text(
    text: str,
    *,
    finish_reason: str | None = None,
    token_ids: Sequence[int] | None = None,
    logprobs: Sequence[float | None] | None = None,
    prompt_script: str | None = None,
    max_tokens: int | None = None,
) -> list[Problem]:
    """Return every defect of one output; empty for a healthy one.

    `prompt_script` is a name as `script_of` returns it, compared only when given; `logprobs` belong to the generated
    tokens, in nats, None where JSON could not represent the number.
    """
    problems = _empty(text, finish_reason, token_ids)
    if token_ids:
        problems += _zero_ids(token_ids)
    if text.strip():
        problems += _runs(text) or _loops(text)
        problems += _broken_bytes(text, finish_reason)
        problems += _leaked_tokens(text, finish_reason, max_tokens)
        problems += _scripts(text, prompt_script)
    if logprobs:
        problems += judge_logprobs(logprobs)
    return problems


def judge_logprobs(values: Sequence[float | None]) -> list[Problem]:
    """Return the defects in log-probabilities (greedy, in nats): NaN, infinite, positive or flat."""
    numbers = [value for value in values if value is not None and math.isfinite(value)]
    if len(numbers) < len(values):
        # the engine's JSON writer turns NaN and infinity into null
        bad = len(values) - len(numbers)
        return [Problem(kind="nan-logprobs", message=f"{bad} of {len(values)} log-probabilities are NaN or infinite")]
    if max(numbers) > 1e-3:
        return [Problem(kind="positive-logprobs", message=f"a log-probability is above 0: {max(numbers):.4g}")]
    mean = sum(numbers) / len(numbers)
    spread = max(numbers) - min(numbers)
    if len(numbers) >= 4 and spread < 1e-6 and mean < -1e-3:
        return [Problem(kind="flat-logprobs", message=f"all {len(numbers)} log-probabilities are {mean:.4f}")]
    if len(numbers) >= 4 and mean < -7:
        # ln(32000) = 10.4: the most likely token is hardly more likely than any other
        return [Problem(kind="flat-logprobs", message=f"near-uniform choice: mean log-probability {mean:.2f}")]
    return []


def script_of(text: str) -> str:
    """Return the main script of a text's letters: LATIN, CJK, CYRILLIC ...; empty below three letters."""
    counts = _script_counts(text)
    return counts.most_common(1)[0][0] if sum(counts.values()) >= 3 else ""


def _empty(text: str, finish: str | None, ids: Sequence[int] | None) -> list[Problem]:
    if text.strip():
        return []
    if ids and len(ids) >= 4:
        kind, what = "no-text", f"{len(ids)} tokens decode to an empty text"
    elif text:
        kind, what = "whitespace", f"the answer is only whitespace ({len(text)} characters)"
    else:
        kind, what = "empty", "the answer is empty"
    return [Problem(kind=kind, message=f"{what} (finish reason {finish})" if finish else what, sample=text[:20])]


def _zero_ids(ids: Sequence[int]) -> list[Problem]:
    longest = _longest_run(ids, 0)
    if longest >= 4 or (len(ids) >= 4 and sum(1 for item in ids if item == 0) * 2 > len(ids)):
        message = f"token id 0 repeats {longest} times in a row, which indicates NaN logits"
        return [Problem(kind="token-zero", message=message, sample=str(list(ids[:12])))]
    return []


def _runs(text: str) -> list[Problem]:
    body = text.strip()
    if len(body) >= 6 and len(set(body)) == 1:
        return [_repeated(body[0], len(body), "the whole answer is")]
    for match in re.finditer(r"(.)\1{11,}", text, re.DOTALL):
        if len(match[0]) >= _allowed_run(match[1]):
            return [_repeated(match[1], len(match[0]), "the answer contains")]
    return []


def _allowed_run(character: str) -> int:
    if character in SEPARATORS or character.isspace():
        return 300
    if character == "0":
        return 130  # a googol has 100 zeros
    return 60 if character.isalnum() else 20  # base64 of zero bytes is a row of A


def _repeated(character: str, count: int, where: str) -> Problem:
    kind = "token-zero" if character == "!" else "repeated-character"  # id 0 is "!" in most BPE vocabularies
    return Problem(kind=kind, message=f"{where} {character!r} × {count}", sample=character * min(count, 20))


def _loops(text: str) -> list[Problem]:
    loop = find_loop(text)
    if loop is not None:
        return [_loop_problem(loop)]
    sentence = repeated_sentences(text)
    if sentence is not None:
        count, unit = sentence
        return [Problem(kind="loop", message=f"one sentence repeated {count} times: {unit[:60]!r}", sample=unit[:120])]
    return []


def _loop_problem(loop: Loop) -> Problem:
    unit = loop.unit if len(loop.unit) <= 60 else loop.unit[:59] + "…"
    message = f"{unit!r} repeated {loop.times:.0f} times (period {len(loop.unit)} characters)"
    return Problem(kind="loop", message=message, sample=loop.unit[:120])


def _broken_bytes(text: str, finish: str | None) -> list[Problem]:
    # a reply cut off by max_tokens may end inside a multi-byte character
    body = text.rstrip("\ufffd") if finish == "length" else text
    replaced = body.count("\ufffd")
    if replaced >= 3 or replaced * 50 > len(body):
        return [
            Problem(
                kind="replacement-characters", message=f"{replaced} replacement characters (U+FFFD)", sample=body[:40]
            )
        ]
    garbled = _MOJIBAKE.findall(text)
    if len(garbled) >= 2 and sum(map(len, garbled)) * 100 >= len(text):
        return [Problem(kind="mojibake", message=f"UTF-8 decoded as Latin-1: {garbled[0]!r}", sample=text[:40])]
    odd = sum(1 for c in text if unicodedata.category(c) in ("Co", "Cn", "Cs") or (c < " " and c not in "\t\n\r\x1b\f"))
    if odd >= 2 and odd * 50 >= len(text):
        return [Problem(kind="control-characters", message=f"{odd} control or unassigned characters")]
    return []


def _leaked_tokens(text: str, finish: str | None, max_tokens: int | None) -> list[Problem]:
    raw = _RAW_TOKENS.findall(text)
    if len(raw) >= 3 and len(raw) * 30 >= len(text.split()):
        return [
            Problem(
                kind="undecoded-tokens",
                message=f"undecoded vocabulary glyphs in the text: {raw[0]!r}",
                sample=text[:60],
            )
        ]
    special = _SPECIAL.findall(text)
    ends = re.search(rf"(?:{_SPECIAL.pattern})\s*\Z", text)
    if len(special) >= 4 or ends:
        ran_on = finish == "length" and bool(max_tokens)
        message = f"special token in the text: {special[0]!r}" + (", and the end of turn was not recognised" * ran_on)
        return [Problem(kind="special-tokens", message=message, sample=text[-60:])]
    return []


def _scripts(text: str, prompt_script: str | None) -> list[Problem]:
    counts = _script_counts(text)
    letters = sum(counts.values())
    if letters < 12:
        return []
    main, share = counts.most_common(1)[0]
    used = [name for name, count in counts.items() if count >= 2 and count * 50 >= letters]
    if len(used) >= 4 and share * 4 < letters * 3:
        return [
            Problem(
                kind="mixed-scripts",
                message=f"letters of several scripts are mixed: {', '.join(used)}",
                sample=text[:60],
            )
        ]
    matching = counts.get(prompt_script or main, 0)
    if prompt_script and matching * 2 < letters:
        message = f"{main.title()} letters in answer to a {prompt_script.title()} prompt"
        return [Problem(kind="wrong-script", message=message, sample=text[:60])]
    return []


def _script_counts(text: str) -> Counter[str]:
    return Counter(_script(character) for character in text if character.isalpha() and character not in "ªº")


def _script(character: str) -> str:
    if character < "\u0250":
        return "LATIN"
    name = unicodedata.name(character, "")
    if name.startswith(("CJK", "HIRAGANA", "KATAKANA", "BOPOMOFO", "KANGXI", "IDEOGRAPHIC")):
        return "CJK"
    first = name.partition(" ")[0]
    # mathematical letters, letter-like symbols and phonetic signs belong to any script
    return first if first in _SCRIPTS else "LATIN" if first in ("MATHEMATICAL", "MODIFIER", "FULLWIDTH") else "OTHER"


def _longest_run(ids: Sequence[int], token: int) -> int:
    longest = current = 0
    for item in ids:
        current = current + 1 if item == token else 0
        longest = max(longest, current)
    return longest
