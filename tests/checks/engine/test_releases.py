"""Which recorded release is used for a version that is not recorded, and the note about it."""

from __future__ import annotations

import pytest
from packaging.version import Version

from checks.engine.releases import available, nearest

KNOWN = ("0.5.8", "0.5.9", "0.5.9.post1", "0.5.10", "0.6.0")


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        ("0.5.10.post1.dev12+gabc", "0.5.10"),
        ("0.5.11.dev5+g1234567", "0.5.11"),
        ("0.5.20.dev0", "0.5.20"),
        ("0.5.9.post7", "0.5.9"),
        ("0.5.6.post3", "0.5.6.post2"),
        ("0.6.0", available()[-1]),
        ("0.3.0", "0.4.10"),
    ],
)
def test_an_unrecorded_version_uses_the_nearest_release_with_a_note(asked: str, taken: str) -> None:
    assert nearest(asked) == (taken, f"{asked} is not recorded: {taken}, the nearest release, is used instead")


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        ("0.5.9.post2", "0.5.9.post1"),
        ("0.5.9.dev3", "0.5.9"),
        ("0.5.9.post1.dev1", "0.5.9"),
        ("v0.5.10+cu130", "0.5.10"),
        ("0.5.11", "0.5.10"),
        ("0.7", "0.6.0"),
        ("0.1", "0.5.8"),
        ("0.6.0rc1", "0.6.0"),
    ],
)
def test_one_may_choose_from_a_list_of_ones_own(asked: str, taken: str) -> None:
    release, note = nearest(asked, KNOWN)
    assert release == taken and asked in note


@pytest.mark.parametrize("version", KNOWN)
def test_a_recorded_version_needs_no_note(version: str) -> None:
    assert nearest(version, KNOWN) == (version, "")


@pytest.mark.parametrize(
    ("asked", "note"),
    [
        ("", "unknown engine version: 0.6.0 is used instead"),
        ("main", "main is a build without a release number: 0.6.0 is used instead"),
        ("0.0.0.dev1+g0123456", "0.0.0.dev1+g0123456 is a build without a release number: 0.6.0 is used instead"),
    ],
)
def test_without_a_release_number_the_newest_is_taken(asked: str, note: str) -> None:
    assert nearest(asked, KNOWN) == ("0.6.0", note)
    assert nearest(asked)[0] == available()[-1]


def test_releases_are_listed_oldest_first() -> None:
    versions = [Version(release) for release in available()]
    assert versions == sorted(set(versions))
