"""Doors to `knowledge/tables/`: what each release of the engine requires, and which architectures it registers.

The JSON files are indexes over `knowledge/engines/`, written by `tools/index_engines.py`. What the facts of a launch
mean against them is worked out in `packages`, `kernels` and `checkpoint`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from msgspec import Struct
from packaging.version import Version

from checks import KNOWLEDGE
from checks.vocabulary import parse_version

TABLES = KNOWLEDGE / "tables"


class Requirements(Struct, frozen=True, kw_only=True):
    """What one release demands of other distributions; names are normalised (`flashinfer-python`)."""

    release: str
    minimum: Mapping[str, str]  # refused below this by `assert_pkg_version` at start-up
    requires: Mapping[str, str]  # specifiers of its METADATA

    def pin(self, name: str) -> str | None:
        """The one version it pins (`==`), or None."""
        specifier = self.requires.get(name, "")
        return specifier.removeprefix("==") if specifier.startswith("==") else None


def requirements(engine: str | None) -> Requirements | None:
    """Requirements of that release, for a build between releases those of the release before it of the same number."""
    parsed = parse_version(engine) if engine else None
    if parsed is None:
        return None
    known = [item for item in releases() if item.release == parsed.release]
    older = [item for item in known if item <= parsed]
    chosen = older[-1] if older else known[0] if known else None
    return all_requirements()[str(chosen)] if chosen else None


@cache
def all_requirements() -> Mapping[str, Requirements]:
    """Requirements by release number, oldest first."""
    data = json.loads((TABLES / "requirements.json").read_text(encoding="utf-8"))
    return {
        release: Requirements(
            release=release, minimum=data["minimum"].get(Version(release).base_version, {}), requires=requires
        )
        for release, requires in data["requires"].items()
    }


@cache
def first_releases() -> Mapping[str, str]:
    """Architecture name → first release that registers it; 0.4.10, the oldest one read, stands for "or earlier"."""
    data = json.loads((TABLES / "architectures.json").read_text(encoding="utf-8"))
    return {name: release for release, names in data.items() for name in names}


@cache
def releases() -> tuple[Version, ...]:
    """Every release that was read, oldest first."""
    return tuple(sorted(Version(release) for release in all_requirements()))
