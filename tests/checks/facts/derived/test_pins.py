"""Versions of kernel packages: measured ones first, else what the release demands."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.version import Version

from checks.facts.derived.pins import derive
from checks.facts.derived.tables import all_requirements, releases

# The oldest release of the table is 0.5.3; post releases demand what their base does.
RELEASES = [str(release) for release in releases() if release >= Version("0.5.3") and not release.is_postrelease]


@pytest.mark.parametrize(
    ("facts", "flashinfer", "deep_gemm"),
    [
        ({"engine.version": "0.5.16"}, "0.6.14", "0.1.4.post1"),
        ({"engine.version": "0.5.9"}, "0.6.3", None),
        ({"engine.version": "0.5.12.post1"}, "0.6.11.post1", "0.1.0"),
        ({"engine.version": "0.5.16.dev3+gabc"}, "0.6.14", "0.1.4.post1"),
        ({"engine.version": "0.5.16", "package.flashinfer-python": "0.6.15"}, "0.6.15", "0.1.4.post1"),
        ({"engine.version": "0.5.16", "package.sgl-deep-gemm": "0.1.9"}, "0.6.14", "0.1.9"),
        ({"engine.version": "0.4.10"}, None, None),
        ({"engine.version": "main"}, None, None),
        ({"package.flashinfer-python": "0.6.15"}, "0.6.15", None),
        ({}, None, None),
    ],
)
def test_an_installed_version_goes_before_the_releases_own(
    facts: dict[str, Any], flashinfer: str | None, deep_gemm: str | None
) -> None:
    found = derive(facts)
    assert (found.get("launch.flashinfer_version"), found.get("launch.deep_gemm_version")) == (flashinfer, deep_gemm)


@pytest.mark.parametrize(("installed", "seen"), [("2.8.3", True), (None, False)])
def test_flash_attn_is_seen_only_where_it_was_found(installed: str | None, seen: bool) -> None:
    assert derive({"package.flash-attn": installed})["launch.flash_attn_seen"] is seen
    assert derive({})["launch.flash_attn_seen"] is False


@pytest.mark.parametrize("release", RELEASES)
def test_the_table_agrees_with_the_requirements_of_the_wheels(release: str) -> None:
    found, wanted = derive({"engine.version": release}), all_requirements()[release]
    for fact, package in (("flashinfer_version", "flashinfer-python"), ("deep_gemm_version", "sgl-deep-gemm")):
        assert found.get(f"launch.{fact}") == wanted.pin(package)
