"""Compute the words that a line must contain for a pattern to match: the prefilter that makes scanning fast.

This works on the parse tree of `re` while the index of the knowledge is built; it never runs on log text.
`word_search` searches for the words. A pattern that ignores case would have none: `line_patterns` rejects it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

Requirement: TypeAlias = frozenset[str]
"""Alternatives: every matching line contains one of them."""

MIN_CHARS = 4

# Lines that a busy server prints by the million. A word from them would stop the scan at each of these lines.
ORDINARY = (
    "Prefill batch. Prefill batch, #new-seq: #new-token: #cached-token: full token usage: swa token usage: mamba num: "
    "mamba usage: #running-req: #queue-req: #pending-token: input throughput (token/s): "
    "Decode batch. Decode batch, #full token: #swa token: #token: cuda graph: True cpu graph: False gen throughput "
    "accept len: accept rate: #prealloc-req: #transfer-req: #inflight-req: pre-allocated usage: #retracted-req: "
    'INFO: 127.0.0.1:40000 - "POST /v1/chat/completions HTTP/1.1" 200 OK "POST /generate" "GET /health_generate" '
    '"GET /metrics" "GET /v1/models" "POST /v1/completions" 503 Service Unavailable 400 Bad Request'
)


def requirements(pattern: str) -> tuple[Requirement, ...]:
    """Return every requirement of a regex, in order; empty if all of the regex is optional."""
    parsed = re._parser.parse(pattern)  # type: ignore[attr-defined]  # private, stable since 3.11; lint covers it
    return tuple(_sequence(parsed))


def best(pattern: str) -> Requirement:
    """Return the requirement that the fewest lines meet; empty if there is none."""
    usable = [need for need in requirements(pattern) if min(map(len, need)) >= 2]
    return max(usable, key=_selectivity, default=frozenset())


def cover(needs: Iterable[Requirement]) -> tuple[str, ...]:
    """Return a small set of words such that each alternative of each requirement contains one (greedy cover).

    A literal that ordinary lines also contain has no word: its pattern is only tried on lines kept for another reason.
    """
    uncovered = {literal for need in needs for literal in need}
    containing: dict[str, set[str]] = {}
    for literal in uncovered:
        for word in _words(literal):
            containing.setdefault(word, set())
    for word, literals in containing.items():
        literals.update(literal for literal in uncovered if word in literal)
    chosen = []
    while uncovered:
        word = max(sorted(containing), key=lambda name: (len(containing[name] & uncovered), len(name)), default="")
        if not word or not containing[word] & uncovered:
            break
        chosen.append(word)
        uncovered -= containing.pop(word)
    return tuple(sorted({*chosen, *(literal for literal in uncovered if literal not in ORDINARY)}))


def _selectivity(need: Requirement) -> tuple[bool, int, int]:
    return (not any(literal in ORDINARY for literal in need), min(map(len, need)), -len(need))


def _words(literal: str) -> list[str]:
    """Return the parts of a literal that can represent it: its words, or the literal if they are short or ordinary."""
    words = [
        word for word in re.findall(r"[A-Za-z_][\w.-]+", literal) if len(word) >= MIN_CHARS and word not in ORDINARY
    ]
    return words or ([] if literal in ORDINARY else [literal])


def _sequence(items: Iterable[Any]) -> list[Requirement]:
    needs: list[Requirement] = []
    run: list[str] = []
    for operator, argument in items:
        name = str(operator)
        if name == "LITERAL":
            run.append(chr(argument))
            continue
        if name == "AT":
            continue
        needs.extend(_literal(run))
        run.clear()
        needs.extend(_compound(name, argument))
    needs.extend(_literal(run))
    return needs


def _compound(name: str, argument: Any) -> list[Requirement]:
    match name:
        case "SUBPATTERN":
            return _sequence(argument[-1])
        case "MAX_REPEAT" | "MIN_REPEAT":
            low, _, inner = argument
            return _sequence(inner) if low >= 1 else []
        case "BRANCH":
            return _branch(argument[1])
        case _:
            return []


def _branch(branches: Sequence[Iterable[Any]]) -> list[Requirement]:
    chosen: set[str] = set()
    for branch in branches:
        options = _sequence(branch)
        if not options:
            return []
        strictest: Requirement = max(options, key=_selectivity)
        chosen.update(strictest)
    return [frozenset(chosen)]


def _literal(run: Sequence[str]) -> list[Requirement]:
    """Return the requirement of consecutive literals."""
    return [frozenset({"".join(run)})] if run else []
