"""Look up which settings lead to a piece of the engine's code, by the functions that read them and files they select.

The rows come from `checks.engine.source.feature_rows`. `checks.suspects` weighs them against the frames of a failure.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from checks.engine.release_rows import rows_for

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+[a-z]*")


class Reader(Struct, frozen=True, kw_only=True):
    """A function that reads options or variables."""

    function: str  # Class.method
    line: int
    end: int
    settings: frozenset[str]  # names of attributes; variables with `$` before the name


class FeatureMap(Struct, frozen=True, kw_only=True):
    """The settings that lead to each file and function of one release."""

    release: str
    exact: bool  # False: from the nearest release, so line numbers do not count
    readers: dict[str, tuple[Reader, ...]]  # file → functions
    values: dict[str, frozenset[str]]  # file → plain values of options that select it
    options: dict[str, frozenset[str]]  # file → options under whose condition it is imported
    uses: dict[str, int]  # setting → functions that read it
    words: dict[str, int]  # word → files whose path contains it
    files: int

    def settings_at(self, file: str, line: int, function: str) -> frozenset[str]:
        """Return the settings that the function at a frame reads; empty if it reads none, or is unknown."""
        readers = self.readers.get(file, ())
        name = function.rsplit(".", 1)[-1]
        named = [reader for reader in readers if reader.function.rsplit(".", 1)[-1] == name]
        if self.exact:
            inside = [reader for reader in named if reader.line <= line <= reader.end]
            named = inside or (named if len(named) == 1 else [])
        return named[-1].settings if named else frozenset()

    def rarity(self, word: str) -> float:
        """Return how much a word tells about a place in the engine: 0 for a word in every path, 1 for one in none."""
        return 1 - math.log1p(self.words.get(word, 0)) / math.log1p(self.files)

    def distinctness(self, setting: str) -> float:
        """Return how much it tells that a function reads a setting: 0 if all functions read it, 1 if one does."""
        total = sum(map(len, self.readers.values()))
        return 1 - math.log(max(self.uses.get(setting, 1), 1)) / math.log(max(total, 2))


def words_of(text: str) -> Iterator[str]:
    """Yield the words of an identifier, path or message in lower case: `FlashMLABackend` → flash, mla, backend."""
    for part in re.split(r"[^A-Za-z0-9]+", text):
        if part:
            yield part.lower()
            pieces = [piece.lower() for piece in _WORD.findall(part)]
            if len(pieces) > 1:
                yield from pieces


def plain(value: str) -> str:
    """Return a value as the rows write it: letters and digits in lower case."""
    return re.sub(r"[^a-z0-9]", "", value.lower())


@lru_cache(maxsize=2)
def load(version: str) -> FeatureMap:
    """Return the map of an engine version; of the nearest release for an unknown one."""
    release, exact, rows = rows_for("features", version)
    readers: dict[str, list[Reader]] = {}
    values: dict[str, set[str]] = {}
    options: dict[str, set[str]] = {}
    uses: Counter[str] = Counter()
    words: Counter[str] = Counter()
    files = 0
    for row in rows:
        kind, _, rest = row.partition("\t")
        fields = rest.split("\t")
        match kind:
            case "P":
                files += 1
                words.update(set(words_of(fields[0])))
            case "F":
                settings = frozenset(fields[4].split(","))
                uses.update(settings)
                reader = Reader(function=fields[1], line=int(fields[2]), end=int(fields[3]), settings=settings)
                readers.setdefault(fields[0], []).append(reader)
            case "V":
                values.setdefault(fields[1], set()).add(fields[0])
            case "S":
                options.setdefault(fields[1], set()).add(fields[0])
    return FeatureMap(
        release=release,
        exact=exact,
        readers={file: tuple(items) for file, items in readers.items()},
        values={file: frozenset(items) for file, items in values.items()},
        options={file: frozenset(items) for file, items in options.items()},
        uses=dict(uses),
        words=dict(words),
        files=max(files, 2),
    )
