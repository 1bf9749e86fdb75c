"""A setting whose package the host lacks is found; a package that nobody asked for is no finding."""

from __future__ import annotations

from typing import Any

import pytest

from checks.engine.flag_history import canonical_elsewhere
from checks.facts.derived.feature_packages import FEATURES, asked_packages, derive


@pytest.mark.parametrize(
    ("facts", "missing"),
    [
        ({"flag.use-ray": True, "package.ray": None}, ["--use-ray needs ray"]),
        ({"flag.use-ray": True, "package.ray": "2.4"}, None),
        ({"flag.use-ray": True}, None),
        ({"flag.use-ray": False, "package.ray": None}, None),
        ({"flag.grammar-backend": "outlines", "package.outlines": None, "package.xgrammar": None},
         ["--grammar-backend outlines needs outlines"]),
        ({"flag.kt-weight-path": "/w", "package.kt-kernel": None}, ["--kt-weight-path /w needs kt-kernel"]),
        ({"flag.moe-a2a-backend": "mooncake", "package.mooncake-transfer-engine": None}, None),
    ],
)  # fmt: skip
def test_packages(facts: dict[str, Any], missing: list[str] | None) -> None:
    assert derive(facts).get("launch.packages_missing") == missing


def test_every_option_exists_and_every_package_is_asked_for() -> None:
    assert [item.option for item in FEATURES if canonical_elsewhere(item.option) != item.option] == []
    assert {"ray", "nvidia-cutlass-dsl", "kt-kernel"} <= asked_packages()
