"""Which engine releases are known, and which of them stands in for a version that is not. Neighbour: `engines`."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import Version

from checks.engine.flag_history import releases
from checks.vocabulary import parse_version


def available() -> tuple[str, ...]:
    """Releases with a schema, oldest first."""
    return releases()


def nearest(version: str, known: Sequence[str] = ()) -> tuple[str, str]:
    """`(release, note)`: the release to take for a version; the note is empty when it is that very release.

    `known` are the releases to choose from, oldest first; left out, those with a schema. A development build of the
    main branch carries the number of the release it leads to, one of a `.postN` that of the release before.
    """
    known = known or available()
    if version in known:
        return version, ""
    newest = known[-1]
    if not version:
        return newest, f"engine version unknown: {newest} was taken for it"
    parsed = parse_version(version)
    if parsed is None or parsed.release == (0, 0, 0):
        return newest, f"{version} is a build without a release number: {newest} was taken for it"
    same = [r for r in known if Version(r).release == parsed.release]
    older = [r for r in same or known if Version(r) <= parsed]
    release = older[-1] if older else (same or list(known))[0]
    return release, f"{version} is not recorded: {release}, the nearest release, was taken for it"
