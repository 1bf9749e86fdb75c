"""The place in an engine release where a message came from, and the conditions under which it is reached.

Looks up what `schema_source.sites` extracted: by message text, or, for an assert without one, by the innermost
frame of a traceback. What the message means for a launch is for the causes to say; this only quotes the engine.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from checks import KNOWLEDGE
from checks.engine.releases import available, nearest

FOLDER = KNOWLEDGE / "engines/sglang/sites"
# Sites of this release are the compression dictionary of the others: 24 releases in 1.6 MB instead of 5.6 MB.
DICTIONARY_RELEASE = "0.5.23"
MAX_MESSAGE = 20_000  # characters of a message that are looked at
ANCHOR_DIGITS = 7  # of `schema_source.sites`, which is not imported for it: `ast` costs start-up time
MIN_LITERAL = 8  # a shorter literal says nothing about where it comes from
PLACEHOLDER = re.compile(r"\{[^{}]*\}")


class RaiseSite(Struct, frozen=True, kw_only=True):
    """One raise, assert or warning of the engine."""

    kind: str  # name of the exception, `assert`, or the log level
    message: str  # template: what is filled in stands in braces as source
    conditions: tuple[str, ...]  # outermost first
    function: str  # Class.method
    file: str  # inside the package
    line: int
    end: int
    release: str
    exact: bool  # False: found in the nearest release or on a near line

    @property
    def where(self) -> str:
        """file:line"""
        return f"{self.file}:{self.line}"


class SiteTable(Struct, frozen=True, kw_only=True):
    """All sites of one release as text rows, see `schema_source.sites.row`. Rows are taken apart when they are hit."""

    release: str
    exact: bool
    rows: tuple[str, ...]

    def lookup(self, message: str, *, kind: str = "", limit: int = 3) -> tuple[RaiseSite, ...]:
        """Sites whose template fits the message, the most specific first. `kind` prefers one exception.

        Linear in the message: a template fits when its literal pieces occur in order.
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
        """The site on a line of a file (any absolute path that ends like it), else the nearest in its function."""
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
    """Sites of an engine version (or of the nearest release) that can have written `message`, best first."""
    return table(version).lookup(message, kind=kind, limit=limit)


def at_frame(version: str, file: str, line: int, function: str = "") -> RaiseSite | None:
    """The site at the innermost frame of a traceback, for asserts without a message."""
    return table(version).at(file, line, function)


@lru_cache(maxsize=4)
def table(version: str) -> SiteTable:
    """Sites of an engine version, of the nearest release when that one is not known."""
    release, note = nearest(version, recorded())
    return SiteTable(release=release, exact=not note, rows=tuple(_unpacked(release).split("\n")))


@lru_cache(maxsize=1)
def recorded() -> tuple[str, ...]:
    """Releases whose sites are known, oldest first; those of most `.postN` releases are not."""
    names = {entry.name.removesuffix(".zst") for entry in FOLDER.iterdir()}
    return tuple(release for release in available() if release in names)


def inside_package(file: str) -> str:
    """`srt/server_args.py` of any path to it."""
    return file.replace("\\", "/").rsplit("sglang/", 1)[-1]


def _score(template: str, text: str) -> int:
    """Number of literal characters of a fitting template, 0 when it does not fit."""
    position, total = 0, 0
    for piece in literals(template):
        found = text.find(piece, position)
        if found < 0:
            return 0
        position = found + len(piece)
        total += len(piece)
    return total


def literals(template: str) -> list[str]:
    """What a template says whatever is filled in. A template that was cut off ends where it was cut."""
    plain = template.removesuffix("…").replace("{{", "\x01").replace("}}", "\x02")
    pieces = (piece.replace("\x01", "{").replace("\x02", "}").strip() for piece in PLACEHOLDER.split(plain))
    return [piece for piece in pieces if piece]


def _same_function(qualified: str, function: str) -> bool:
    return not function or qualified.rsplit(".", maxsplit=1)[-1] == function.rsplit(".", maxsplit=1)[-1]


def _unpacked(release: str) -> str:
    try:
        import zstandard
    except ImportError:  # run from a bare source tree: then a refusal that nobody knows stays without its condition
        return ""
    base = zstandard.ZstdDecompressor().decompress((FOLDER / f"{DICTIONARY_RELEASE}.zst").read_bytes())
    if release == DICTIONARY_RELEASE:
        return base.decode()
    dictionary = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    packed = (FOLDER / f"{release}.zst").read_bytes()
    return zstandard.ZstdDecompressor(dict_data=dictionary).decompress(packed).decode()
