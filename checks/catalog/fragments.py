"""Wordings that several entries look for, kept once: `{name}` in a regex of a pattern stands for one of them.

`knowledge/fragments.yaml` holds name → {pattern, meaning}. Not a macro language: a fragment holds no other fragment.
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
    """One wording in all its forms."""

    pattern: str  # a regular expression without fragments
    meaning: str


@cache
def fragments(root: Path = KNOWLEDGE) -> Mapping[str, Fragment]:
    """Every fragment of the knowledge under `root`, by name; none without the file. Raises YamlError."""
    path = root / FILE
    if not path.exists():
        return {}
    loaded: dict[str, Fragment] = {}
    for name, node in read(path, FILE).mapping().items():
        node.mapping(["pattern", "meaning"])
        pattern = node.need("pattern")
        if not _NAME.fullmatch(f"{{{name}}}"):
            raise node.fail(f"`{name}` is not lower-case words joined by hyphens")
        if names_in(pattern.text()):
            raise pattern.fail("a fragment holds no other fragment")
        loaded[name] = Fragment(pattern=pattern.text(), meaning=node.need("meaning").text())
    return loaded


def names_in(regex: str) -> tuple[str, ...]:
    """The names of fragments in a regex, as often as they occur."""
    return tuple(_NAME.findall(regex))


def expand(regex: str, known: Mapping[str, Fragment], where: str) -> str:
    """The regex with each `{name}` replaced, as a group. Raises YamlError at `where` for a name that is not known."""
    for name in names_in(regex):
        if name not in known:
            raise YamlError(f"unknown fragment `{{{name}}}`", where, did_you_mean(name, known))
    return _NAME.sub(lambda name: f"(?:{known[name[1]].pattern})", regex)


def root_of(folder: Path) -> Path:
    """The knowledge whose fragments hold for an entry's folder: its own, else (a draft) what ships."""
    return root if (root := folder.parent.parent).joinpath(FILE).exists() else KNOWLEDGE
