"""Narrow the release behind a log that does not name it, by `file.py:line` of the messages that the engine prints.

The recorded raise sites of each release contain the line of every warning and error. A message on exactly the line of a
release identifies it, or a build shortly before it; a line between those of two releases is a build between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from checks.engine.raise_sites import ANCHOR_DIGITS, fits, literals
from checks.engine.release_rows import recorded, rows_for

_LOGGED = re.compile(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<file>\w+\.py):(?P<line>\d+): (?P<message>.{12,})")
_WARNED = re.compile(r"\S*?sglang/(?P<file>[\w/]+\.py):(?P<line>\d+): \w*Warning: (?P<message>.{12,})")
_MOST_PLACES = 6
_LONG_START = 30  # characters at the beginning of a message that identify its template
_FAR = 10_000  # the distance of a message that a release does not have


class PrintedLine(Struct, frozen=True):
    """A message with its place in the source."""

    file: str  # name, or path inside the package
    line: int
    message: str

    @property
    def where(self) -> str:
        """file:line"""
        return f"{self.file}:{self.line}"


class Narrowed(Struct, frozen=True, kw_only=True):
    """The release that fits best. `exact` counts the places that are on exactly its line."""

    release: str
    exact: int
    places: tuple[PrintedLine, ...]


def printed_lines(texts: Iterable[str]) -> tuple[PrintedLine, ...]:
    """Return the first messages of the engine that name their place; texts are lines without time and ranks."""
    found = dict.fromkeys(_places(texts))
    return tuple(found)[:_MOST_PLACES]


def narrowed(places: tuple[PrintedLine, ...]) -> Narrowed | None:
    """Return the release whose source fits the places best; None if no release has any of the messages.

    Of equal releases the first one is returned: most lines of a file stay where they are in patch releases.
    """
    best: tuple[int, int] | None = None
    chosen = None
    for release in recorded("sites"):
        distances = [_distance(release, place) for place in places]
        known = [distance for distance in distances if distance < _FAR]
        if not known:
            continue
        fit = (-distances.count(0), sum(distances))
        if best is None or fit < best:
            best, chosen = fit, Narrowed(release=release, exact=distances.count(0), places=places)
    return chosen


def _places(texts: Iterable[str]) -> Iterator[PrintedLine]:
    for text in texts:
        match = _LOGGED.match(text) or _WARNED.match(text)
        if match:
            yield PrintedLine(match["file"], int(match["line"]), match["message"])


def _agrees(template: str, message: str) -> bool:
    """Return whether a message is of a template; only the first line of a message is on the line of its place."""
    first = next(iter(literals(template)), "")
    begins = len(first) >= _LONG_START and message.startswith(first[: len(message)][:_LONG_START])
    return begins or fits(template, message)


def _distance(release: str, place: PrintedLine) -> int:
    """Return how many lines a message is from its place in a release; _FAR if the release does not have it."""
    best = _FAR
    suffix = f"{place.file.rsplit('/', 1)[-1]}\t"
    for row in rows_for("sites", release)[2]:
        head = row.find("\t") + 1
        if not row.startswith(suffix, head - len(suffix)):
            continue
        fields = row[ANCHOR_DIGITS:].split("\t", 6)
        if not _agrees(fields[5], place.message):
            continue
        line, end = int(fields[1]), int(fields[1]) + int(fields[2])
        best = min(best, 0 if line <= place.line <= end else min(abs(place.line - line), abs(place.line - end)))
    return best
