"""Look up the statement in an engine release that raised a message, and the conditions under which it is reached.

The data comes from `checks.engine.source.sites`. The look-up is by message text or, for an assert without a message, by
the innermost frame of a traceback. It only quotes the engine; the causes explain what a message means for a launch.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from checks.engine.release_rows import rows_for

MAX_MESSAGE = 20_000  # characters of a message that are compared
ANCHOR_DIGITS = 7  # as in `checks.engine.source.sites`, which is not imported because `ast` costs start-up time
LONG_PIECE = 24  # characters of one literal that identify a template without any other evidence
MIN_LITERAL = 8  # a shorter literal does not identify a site
PLACEHOLDER = re.compile(r"\{[^{}]*\}")


class RaiseSite(Struct, frozen=True, kw_only=True):
    """One raise, assert or warning of the engine."""

    kind: str  # name of the exception, `assert`, or the log level
    message: str  # template: the expressions that fill it are in braces, as source
    conditions: tuple[str, ...]  # outermost first
    function: str  # Class.method
    file: str  # inside the package
    line: int
    end: int
    release: str
    exact: bool  # False: from the nearest release, or on a nearby line

    @property
    def where(self) -> str:
        """file:line"""
        return f"{self.file}:{self.line}"


class SiteTable(Struct, frozen=True, kw_only=True):
    """All sites of one release as text rows, see `checks.engine.source.sites.row`. A row is parsed when it matches."""

    release: str
    exact: bool
    rows: tuple[str, ...]

    def lookup(self, message: str, *, kind: str = "", limit: int = 3) -> tuple[RaiseSite, ...]:
        """Return the sites whose template matches the message, the most specific first. `kind` prefers one exception.

        Time is linear in the message: a template matches if its literal pieces occur in order.
        """
        text = " ".join(message[:MAX_MESSAGE].split())
        hits: list[tuple[bool, int, int]] = []
        for index, row in enumerate(self.rows):
            start, length = int(row[:4], 16), int(row[4:7], 16)
            if length < MIN_LITERAL or row[start : start + length].strip() not in text:
                continue
            fields = row.split("\t", 6)
            score = _score(fields[5], text)
            if score:
                hits.append((fields[4] == kind, score, -index))
        hits.sort(reverse=True)
        best = [-index for same, score, index in hits if score * 2 > hits[0][1] and same == hits[0][0]]
        return tuple(self._site(self.rows[index], exact=self.exact) for index in best[:limit])

    def at(self, file: str, line: int, function: str = "") -> RaiseSite | None:
        """Return the site on a line of a file (any absolute path to it), else the nearest site in the same function.

        The nearest site counts only in a table of another release (`exact` False); else the answer is None.
        """
        suffix = inside_package(file) + "\t"
        near: list[tuple[int, str]] = []
        for row in self.rows:
            if not row.startswith(suffix, ANCHOR_DIGITS):
                continue
            fields = row.split("\t", 4)
            start, length = int(fields[1]), int(fields[2])
            if start <= line <= start + length and _same_function(fields[3], function):
                return self._site(row, exact=self.exact)
            if function and _same_function(fields[3], function):
                near.append((abs(start - line), row))
        return self._site(min(near)[1], exact=False) if near and not self.exact else None

    def _site(self, row: str, *, exact: bool) -> RaiseSite:
        file, line, length, function, kind, message, *conditions = row[ANCHOR_DIGITS:].split("\t")
        return RaiseSite(
            kind=kind,
            message=message,
            conditions=tuple(conditions),
            function=function,
            file=file,
            line=int(line),
            end=int(line) + int(length),
            release=self.release,
            exact=exact,
        )


def lookup(version: str, message: str, *, kind: str = "", limit: int = 3) -> tuple[RaiseSite, ...]:
    """Return the sites of an engine version (or of the nearest release) that may have raised `message`, best first."""
    return table(version).lookup(message, kind=kind, limit=limit)


def at_frame(version: str, file: str, line: int, function: str = "") -> RaiseSite | None:
    """Return the site at the innermost frame of a traceback, for asserts without a message; None if unknown."""
    return table(version).at(file, line, function)


@lru_cache(maxsize=4)
def table(version: str) -> SiteTable:
    """Return the sites of an engine version; of the nearest release for an unknown one."""
    release, exact, rows = rows_for("sites", version)
    return SiteTable(release=release, exact=exact, rows=rows)


def inside_package(file: str) -> str:
    """Return the path inside the package, such as `srt/server_args.py`, from any path to the file."""
    return file.replace("\\", "/").rsplit("sglang/", 1)[-1]


def _score(template: str, text: str) -> int:
    """Return the number of literal characters of a matching template; 0 if it does not match."""
    position, total = 0, 0
    for piece in literals(template):
        place = text.find(piece, position)
        if place < 0:
            return 0
        position = place + len(piece)
        total += len(piece)
    return total


def fits(template: str, message: str) -> bool:
    """Return whether a message can be of a template."""
    return _score(template, " ".join(message.split())) > 0


def literals(template: str) -> list[str]:
    """Return the literal pieces of a template. A truncated template ends where it was cut."""
    plain = template.removesuffix("…").replace("{{", "\x01").replace("}}", "\x02")
    pieces = (piece.replace("\x01", "{").replace("\x02", "}").strip() for piece in PLACEHOLDER.split(plain))
    return [piece for piece in pieces if piece]


def _same_function(qualified: str, function: str) -> bool:
    return not function or qualified.rsplit(".", maxsplit=1)[-1] == function.rsplit(".", maxsplit=1)[-1]
