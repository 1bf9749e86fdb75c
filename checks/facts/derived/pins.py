"""Derive the versions of kernel packages: the installed version, else the version that the engine release requires.

The table is taken from the requirements of the wheels. `packages` checks whether an installed package differs from it.
"""

from __future__ import annotations

from typing import Any

from checks.catalog.conditions import Facts
from checks.vocabulary import parse_version

# Requires-Dist of the wheels of each release: flashinfer_python, sgl-deep-gemm.
_PINS: dict[str, tuple[str, str | None]] = {
    "0.5.3": ("0.4.0rc3", None), "0.5.4": ("0.4.1", None), "0.5.5": ("0.5.0", None), "0.5.6": ("0.5.3", None),
    "0.5.7": ("0.5.3", None), "0.5.8": ("0.6.1", None), "0.5.9": ("0.6.3", None), "0.5.10": ("0.6.7.post2", None),
    "0.5.11": ("0.6.8.post1", None), "0.5.12": ("0.6.11.post1", "0.1.0"), "0.5.13": ("0.6.12", "0.1.2"),
    "0.5.14": ("0.6.12", "0.1.3"), "0.5.15": ("0.6.12", "0.1.4"), "0.5.16": ("0.6.14", "0.1.4.post1"),
    "0.5.17": ("0.6.15.post1", "0.1.5.post1"), "0.5.18": ("0.6.17", "0.1.5.post3"), "0.5.19": ("0.6.18", "0.1.7"),
    "0.5.20": ("0.6.18", "0.2.0"), "0.5.21": ("0.6.18", "0.2.0"), "0.5.22": ("0.7.1", "0.2.2"),
    "0.5.23": ("0.7.2", "0.2.3.post2"),
}  # fmt: skip


def derive(facts: Facts) -> dict[str, Any]:
    """Return `launch.flashinfer_version deep_gemm_version` (measured, else required by release), `flash_attn_seen`."""
    parsed = parse_version(str(facts.get("engine.version") or ""))
    flashinfer, deep_gemm = _PINS.get(parsed.base_version if parsed else "", (None, None))
    measured = facts.get("package.flashinfer-python")
    versions = {
        "launch.flashinfer_version": measured or flashinfer,
        "launch.deep_gemm_version": facts.get("package.sgl-deep-gemm") or deep_gemm,
    }
    derived: dict[str, Any] = {name: str(version) for name, version in versions.items() if version}
    derived["launch.flash_attn_seen"] = bool(facts.get("package.flash-attn"))  # also false when it was not measured
    return derived
