"""Read `knowledge/tables/`: the requirements of each engine release, and the architectures that it registers.

The JSON files are indexes of `knowledge/engines/`, written by `tools/index_engines.py`. `packages`, `kernels` and
`checkpoint_files` compare the facts of a launch with them.
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
    """The requirements of one release on other distributions; names are normalised (`flashinfer-python`)."""

    release: str
    minimum: Mapping[str, str]  # `assert_pkg_version` rejects older versions at start-up
    requires: Mapping[str, str]  # specifiers of its METADATA

    def pin(self, name: str) -> str | None:
        """Return the version that the release pins (`==`), or None."""
        specifier = self.requires.get(name, "")
        return specifier.removeprefix("==") if specifier.startswith("==") else None


def requirements(engine: str | None) -> Requirements | None:
    """Return the requirements of a release; for a build, those of the preceding release with the same number."""
    parsed = parse_version(engine) if engine else None
    if parsed is None:
        return None
    known = [item for item in releases() if item.release == parsed.release]
    older = [item for item in known if item <= parsed]
    chosen = older[-1] if older else known[0] if known else None
    return all_requirements()[str(chosen)] if chosen else None


@cache
def all_requirements() -> Mapping[str, Requirements]:
    """Return the requirements by release number, oldest first."""
    data = json.loads((TABLES / "requirements.json").read_text(encoding="utf-8"))
    return {
        release: Requirements(
            release=release, minimum=data["minimum"].get(Version(release).base_version, {}), requires=requires
        )
        for release, requires in data["requires"].items()
    }


@cache
def first_releases() -> Mapping[str, str]:
    """Return architecture name → first release that registers it; 0.4.10, the oldest known, means "or earlier"."""
    data = json.loads((TABLES / "architectures.json").read_text(encoding="utf-8"))
    return {name: release for release, names in data.items() for name in names}


@cache
def releases() -> tuple[Version, ...]:
    """Return every known release, oldest first."""
    return tuple(sorted(Version(release) for release in all_requirements()))
