"""Normalise a caller's observation to the kinds that signatures use: `nan` and `NaN in logits` become `nan-output`.

`checks.after.measures.garbage` judges whether a text is garbage; this module does not.
"""

from __future__ import annotations

import re
from typing import Any

from checks.catalog.conditions import Facts

# First match wins: `accuracy-zero` is also about accuracy, a repeated word is also a repetition.
_KINDS = (
    ("tool-call-unparsed", r"tool"),
    ("answer-in-reasoning", r"reasoning|thinking"),
    ("low-acceptance", r"accept"),
    ("nan-output", r"\bnans?\b|nan[-_ ]|not a number"),
    ("repeated-word", r"repeat\w*[-_ ](?:words?|phrases?|sentences?)"),
    ("repeated-token", r"repeat|same token|one token|!!!"),
    ("stops-after-first-token", r"after (?:the )?(?:first|one) token"),
    ("endless", r"endless|never[-_ ](?:stops|ends)|runaway"),
    ("accuracy-zero", r"(?:accuracy|score)\w*[-_ ](?:is[-_ ])?(?:zero|0(?:\.0+)?$)"),
    ("accuracy-drop", r"accura|quality|regress|lower[-_ ]score|degrad"),
    ("empty", r"empty|no[-_ ](?:text|output)|blank"),
    ("hang", r"hang|hung|stuck|freez|froze"),
    ("slow", r"slow|throughput|latency"),
    ("garbled", r"garb|gibberish|nonsense|wrong[-_ ]script|incoherent|corrupt"),
)
_KNOWN = frozenset((
    "repeated-token", "repeated-word", "garbled", "garbage", "garbage-text", "garbled-or-stops", "long-context-garbage",
    "prefix-hit-garbage", "cached-prefix-garbage", "endless", "empty", "nan-output", "wrong-sums", "wrong-answer",
    "inconsistent-output", "accuracy-drop", "low-accuracy", "accuracy-zero", "low-acceptance", "zero-acceptance",
    "acceptance-collapse", "slow", "slow-speculation", "low-throughput", "stall", "no-response", "hang", "timeout",
    "deadlock", "tool-call-unparsed", "answer-in-reasoning", "stops-after-first-token",
))  # fmt: skip


def derive(facts: Facts) -> dict[str, Any]:
    """Return `observed.kind` as conditions spell it; empty for a kind that is already so spelled or not recognised."""
    kind = str(facts.get("observed.kind") or "").strip().lower()
    if not kind or kind in _KNOWN:
        return {}
    return next(({"observed.kind": name} for name, pattern in _KINDS if re.search(pattern, kind)), {})
