"""Narrow the release behind a log that does not name it, by the places that it shows in the engine's source.

The recorded raise sites of each release contain the line of every warning and error. A message on exactly the line of a
release identifies it, or a build shortly before it; a line between those of two releases is a build between them. The
recorded readers contain the lines of functions: a frame of a traceback is inside its function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from checks.engine.raise_sites import ANCHOR_DIGITS, LONG_PIECE, fits, literals, table
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


class FramePlace(Struct, frozen=True):
    """A frame of a traceback in the engine."""

    file: str  # path inside the package
    line: int
    function: str

    @property
    def where(self) -> str:
        """file:line"""
        return f"{self.file}:{self.line}"


Place: TypeAlias = "PrintedLine | FramePlace"


class Narrowed(Struct, frozen=True, kw_only=True):
    """The release that fits best. `exact` counts the places that it has exactly there; `as_good` fit equally well."""

    release: str
    exact: int
    places: tuple[Place, ...]
    as_good: tuple[str, ...] = ()  # other releases, oldest first


def printed_lines(texts: Iterable[str]) -> tuple[PrintedLine, ...]:
    """Return the first messages of the engine that name their place; texts are lines without time and ranks."""
    found = dict.fromkeys(_places(texts))
    return tuple(found)[:_MOST_PLACES]


def narrowed(printed: Sequence[PrintedLine], frames: Sequence[FramePlace] = ()) -> Narrowed | None:
    """Return the release whose source fits the places best; None if no release has any of them.

    Of equal releases the first one is returned: most lines of a file stay where they are in patch releases. Places that
    no release has are left out of the answer.
    """
    places: tuple[Place, ...] = (*printed, *frames)
    fits: dict[str, tuple[int, int]] = {}
    known: set[Place] = set()
    for release in recorded("sites"):
        distances = [_distance(release, place) for place in printed]
        distances += _frame_distances(release, frames) if frames else []
        here = {place for place, distance in zip(places, distances, strict=True) if distance < _FAR}
        if here:
            fits[release] = (-distances.count(0), sum(distances))
            known |= here
    if not fits:
        return None
    best = min(fits.values())
    equal = tuple(release for release, fit in fits.items() if fit == best)
    seen = tuple(place for place in places if place in known)
    return Narrowed(release=equal[0], exact=-best[0], places=seen, as_good=equal[1:])


def with_message(message: str, kind: str) -> Narrowed | None:
    """Return the newest release that raises `kind` with a message, and the others that do; None if none does.

    A message identifies releases only by a long literal piece of its template.
    """
    found = [
        release
        for release in recorded("sites")
        if any(
            max(map(len, literals(site.message)), default=0) >= LONG_PIECE
            for site in table(release).lookup(message, kind=kind, limit=1)
        )
    ]
    return Narrowed(release=found[-1], exact=0, places=(), as_good=tuple(found[:-1])) if found else None


def _frame_distances(release: str, frames: Sequence[FramePlace]) -> list[int]:
    """Return for each frame how many lines it is outside its function in a release; _FAR without such a function."""
    best = [_FAR] * len(frames)
    starts = {f"F\t{frame.file}\t" for frame in frames}
    for row in rows_for("features", release)[2]:
        if row[:2] != "F\t" or row[: row.find("\t", 2) + 1] not in starts:
            continue
        _, file, function, first, end, _ = row.split("\t", 5)
        for index, frame in enumerate(frames):
            if frame.file == file and frame.function == function.rsplit(".", 1)[-1]:
                outside = max(int(first) - frame.line, frame.line - int(end), 0)
                best[index] = min(best[index], outside)
    return best


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
