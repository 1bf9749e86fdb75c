"""Shared parts of regexes: `{name}` in a regex of a pattern stands for the fragment of that name.

`knowledge/fragments.yaml` maps each name to {pattern, meaning}. It is not a macro language: a fragment cannot contain
another fragment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

from checks import KNOWLEDGE
from checks.catalog.yaml_reader import YamlError, did_you_mean, read

FILE = "fragments.yaml"
# A repetition such as {2,} begins with a digit, and an escaped brace is a brace.
_NAME = re.compile(r"(?<!\\)\{([a-z][a-z0-9-]*)\}")


class Fragment(Struct, frozen=True, kw_only=True):
    """One phrase of the engine in all its forms."""

    pattern: str  # a regular expression without fragments
    meaning: str


@cache
def fragments(root: Path = KNOWLEDGE) -> Mapping[str, Fragment]:
    """Return every fragment of the knowledge under `root` by name; none if the file is missing. Raises YamlError."""
    path = root / FILE
    if not path.exists():
        return {}
    loaded: dict[str, Fragment] = {}
    for name, node in read(path, FILE).mapping().items():
        node.mapping(["pattern", "meaning"])
        pattern = node.need("pattern")
        if not _NAME.fullmatch(f"{{{name}}}"):
            raise node.fail(f"invalid fragment name `{name}`", "use lower-case words joined by hyphens")
        if names_in(pattern.text()):
            raise pattern.fail("a fragment cannot contain another fragment")
        loaded[name] = Fragment(pattern=pattern.text(), meaning=node.need("meaning").text())
    return loaded


def names_in(regex: str) -> tuple[str, ...]:
    """Return the names of the fragments in a regex, in order and with repetitions."""
    return tuple(_NAME.findall(regex))


def expand(regex: str, known: Mapping[str, Fragment], where: str) -> str:
    """Return the regex with each `{name}` replaced by a group. Raises YamlError at `where` for an unknown name."""
    for name in names_in(regex):
        if name not in known:
            raise YamlError(f"unknown fragment `{{{name}}}`", where, did_you_mean(name, known))
    return _NAME.sub(lambda match: f"(?:{known[match[1]].pattern})", regex)


def root_of(folder: Path) -> Path:
    """Return the knowledge root whose fragments an entry's folder uses: its own, or the shipped one for a draft."""
    return root if (root := folder.parent.parent).joinpath(FILE).exists() else KNOWLEDGE
