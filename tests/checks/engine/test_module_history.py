"""The releases that contain a module."""

from __future__ import annotations

from checks.engine.module_history import releases_with
from checks.engine.release_rows import recorded


def test_a_module_that_was_removed_is_in_the_releases_before() -> None:
    assert releases_with("sglang.srt.conversation")[-1] == "0.5.1"


def test_a_package_counts_and_an_unknown_module_is_in_none() -> None:
    assert releases_with("sglang.srt.managers") == recorded("features")
    assert releases_with("sglang.srt.nowhere") == ()
