"""The rows of every release: present, readable, and those of the nearest release for an unknown version."""

from __future__ import annotations

import pytest

from checks.engine.release_rows import DICTIONARY_RELEASE, recorded, rows_for
from checks.engine.releases import available


@pytest.mark.parametrize("kind", ["sites", "features"])
def test_every_numbered_release_has_rows(kind: str) -> None:
    numbered = {release for release in available() if ".post" not in release}
    assert set(recorded(kind)) == numbered  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("version", "release", "exact"),
    [
        (DICTIONARY_RELEASE, DICTIONARY_RELEASE, True),
        ("0.5.9", "0.5.9", True),
        ("0.5.10.post1", "0.5.10", False),
        ("", DICTIONARY_RELEASE, False),
        ("not a version", DICTIONARY_RELEASE, False),
    ],
)
def test_an_unknown_version_gets_the_rows_of_the_nearest_release(version: str, release: str, exact: bool) -> None:
    found, is_exact, rows = rows_for("features", version)
    assert (found, is_exact) == (release, exact)
    assert len(rows) > 300
