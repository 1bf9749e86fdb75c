"""Propose a release of the engine in which the function that failed has other code."""

from __future__ import annotations

from checks.engine.function_history import Changes, changes
from checks.suspects import attribution_wording as wording
from checks.suspects.clues import Clues
from checks.vocabulary import Remedy, parse_version

_MOST_PLACES = 2  # frames farther out have called the code that failed


def other_release(clues: Clues, version: str) -> Remedy | None:
    """Return the nearest release with another version of the failed function: a later one, else an earlier one.

    None if the function never changed, is unknown, or the version is not that of a release.
    """
    engine = [place for place in clues.places if place.engine][:_MOST_PLACES]
    release = _release(version)
    found = (changes(place.file, place.function, release) for place in engine)
    return next((remedy for item in found if item and (remedy := _remedy(item))), None) if release else None


def _remedy(found: Changes) -> Remedy | None:
    if found.later:
        return Remedy(upgrade={"sglang": found.later}, text=wording.changed_later(found))
    if found.before:
        return Remedy(require={"sglang": f"=={found.before}"}, text=wording.changed_before(found))
    return None


def _release(version: str) -> str:
    """Return the release without `.postN`, whose code differs little; empty for a build without a release number."""
    parsed = parse_version(version) if version else None
    return parsed.base_version if parsed and parsed.release != (0, 0, 0) and not parsed.is_devrelease else ""
