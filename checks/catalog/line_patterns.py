"""Compile the regular expressions of the knowledge: with linear-time RE2, or with the standard library without it.

No other module compiles them. `during.log.required_words` parses them. Both regex engines accept the same subset: lint
compiles every pattern in both.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Protocol

# Without RE2, a pattern with several `.*` takes quadratic time on a line of 26 kB (`server_args=`), so lines are cut.
FALLBACK_LINE_CHARS = 8_192
# A scan keeps only the lines that contain certain words as written, so a pattern cannot ignore case.
_IGNORES_CASE = re.compile(r"(?<!\\)\(\?[a-zA-Z]*i[a-zA-Z]*[:)-]")


class Found(Protocol):
    """The part of a match object that callers use."""

    def group(self, index: int = 0) -> Any:
        """Return the text of a group; None if the group did not take part in the match."""

    def groupdict(self) -> dict[str, Any]:
        """Return the named groups."""


class Pattern(Protocol):
    """A compiled expression."""

    def search(self, text: str) -> Found | None:
        """Return the first match on one line of text, or None."""


class _Plain:
    """The standard library's engine, limited to the first FALLBACK_LINE_CHARS characters of a line."""

    def __init__(self, pattern: str) -> None:
        self._compiled = re.compile(pattern)

    def search(self, text: str) -> Any:
        return self._compiled.search(text[:FALLBACK_LINE_CHARS])


@cache
def re2_module() -> Any:
    """Return the RE2 module, or None if it is not installed."""
    try:
        import re2
    except ImportError:
        return None
    return re2


@cache
def compile_line(pattern: str) -> Pattern:
    """Compile a pattern for searches in single lines. Raises ValueError if it is malformed or ignores case."""
    if _IGNORES_CASE.search(pattern):
        raise ValueError(f"`{pattern}` ignores case; write out the spellings that occur, as in `[Dd]raft|DRAFT`")
    engine = re2_module()
    try:
        if engine is None:
            return _Plain(pattern)
        options = engine.Options()
        options.log_errors = False
        compiled: Pattern = engine.compile(pattern, options)
    except Exception as error:  # re.error, re2.error: unrelated classes
        raise ValueError(f"`{pattern}` is not a valid regular expression: {error}") from error
    return compiled
