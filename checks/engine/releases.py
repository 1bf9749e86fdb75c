"""List the known engine releases, and choose one for a version that is not among them.

`flag_schema` loads the schema of a release.
"""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import Version

from checks.engine.flag_history import releases
from checks.vocabulary import parse_version


def available() -> tuple[str, ...]:
    """Return the releases with a flag schema, oldest first."""
    return releases()


def nearest(version: str, known: Sequence[str] = ()) -> tuple[str, str]:
    """Return `(release, note)`: the release to use for a version, and why; the note is empty for an exact match.

    `known` contains the releases to choose from, oldest first; by default the releases with a schema. A development
    build of the main branch has the number of the next release; a build after a `.postN` has the number of the release
    before it.
    """
    known = known or available()
    if version in known:
        return version, ""
    newest = known[-1]
    if not version:
        return newest, f"unknown engine version: {newest} is used instead"
    parsed = parse_version(version)
    if parsed is None or parsed.release == (0, 0, 0):
        return newest, f"{version} is a build without a release number: {newest} is used instead"
    same = [r for r in known if Version(r).release == parsed.release]
    older = [r for r in same or known if Version(r) <= parsed]
    release = older[-1] if older else (same or list(known))[0]
    return release, f"{version} is not recorded: {release}, the nearest release, is used instead"
