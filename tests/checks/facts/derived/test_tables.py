"""The two tables under `knowledge/tables` against the engine files they were made from, and the look-ups on them."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from checks.engine.flag_schema import available, load
from checks.facts.derived.kernels import KERNELS
from checks.facts.derived.tables import Requirements, all_requirements, first_releases, releases, requirements


def test_requirements_table_agrees_with_every_engine_file() -> None:
    assert list(all_requirements()) == list(available())
    for release in available():
        stated = {
            (canonicalize_name(item.name), str(item.specifier)) for item in map(Requirement, load(release).requirements)
        }
        assert all_requirements()[release].requires.items() <= stated, release


def test_every_release_demands_a_kernel_and_a_flashinfer() -> None:
    for release, item in all_requirements().items():
        assert "flashinfer-python" in item.minimum and item.minimum.keys() & set(KERNELS), release


def test_architecture_table_agrees_with_every_engine_file() -> None:
    known: set[str] = set()
    for release in available():
        named = {name for name in load(release).architectures if not name.startswith("Transformers")}
        assert {name for name, first in first_releases().items() if first == release} == named - known, release
        known |= named


@pytest.mark.parametrize(
    ("engine", "release"),
    [
        ("0.5.9", "0.5.9"),
        ("v0.5.9", "0.5.9"),
        ("0.5.9.post7", "0.5.9"),
        ("0.5.6.post3", "0.5.6.post2"),
        ("0.5.12.dev7+gabc", "0.5.12"),
        ("0.9.0", None),
        ("main", None),
        ("", None),
        (None, None),
    ],
)
def test_requirements_are_those_of_the_release_or_of_the_one_before_it_of_the_same_number(
    engine: str | None, release: str | None
) -> None:
    found = requirements(engine)
    assert (found.release if found else None) == release


@pytest.mark.parametrize(("specifier", "pin"), [("==2.9.1", "2.9.1"), (">=2.9", None), ("", None)])
def test_only_an_exact_requirement_pins(specifier: str, pin: str | None) -> None:
    item = Requirements(release="0.5.9", minimum={}, requires={"torch": specifier} if specifier else {})
    assert item.pin("torch") == pin


def test_releases_are_listed_oldest_first() -> None:
    assert list(releases()) == sorted(releases())
    assert [str(release) for release in releases()] == list(available())
