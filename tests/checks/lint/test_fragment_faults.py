"""A fragment is a wording that several patterns share."""

from __future__ import annotations

from checks.catalog.entries import entries
from checks.catalog.fragments import fragments
from checks.lint.fragment_faults import fragments_are_shared


def test_the_shipped_fragments_are_shared() -> None:
    assert list(fragments_are_shared(entries(), fragments())) == []


def test_a_fragment_that_nobody_shares_is_reported() -> None:
    faults = list(fragments_are_shared((), fragments()))
    assert len(faults) == len(fragments()) and all("is not used" in fault for fault in faults)
