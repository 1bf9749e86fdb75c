"""Turn evidence of any origin into the flat Facts that rules use. `names` defines their names and meanings.

Flags may have any spelling that a release accepts; their facts use the canonical (newest) names. `checks.facts.derived`
adds the facts that need arithmetic or a table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from checks.catalog.conditions import Facts, as_number
from checks.engine.canonical import normalise
from checks.engine.flag_schema import FlagSchema, load
from checks.facts import derived
from checks.vocabulary import Finding, FlagValue


class Launch(Struct, frozen=True, kw_only=True):
    """Everything known about one launch, before or after it happened. A missing key means that it was not measured."""

    engine: str | None = None
    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    gpu: Mapping[str, Any] = field(default_factory=dict)  # name, sm, count, vram_gb, nvlink, platform
    model: Mapping[str, Any] = field(default_factory=dict)
    draft_model: Mapping[str, Any] = field(default_factory=dict)
    packages: Mapping[str, str | None] = field(default_factory=dict)  # None: known to be absent
    host: Mapping[str, Any] = field(default_factory=dict)
    observed: Mapping[str, Any] = field(default_factory=dict)  # the caller's observation: kind, sample


_GPU_NAMES = {"name": "gpu_name", "count": "gpu_count"}


def build(launch: Launch) -> tuple[Facts, list[Finding]]:
    """Return the facts of a launch, and the findings from normalising its flags to canonical names."""
    facts, findings = gather(launch)
    return derived.extend(facts), findings


def gather(launch: Launch) -> tuple[dict[str, Any], list[Finding]]:
    """Return the facts of a launch without the derived facts, and the findings from normalising its flags."""
    schema = load(launch.engine) if launch.engine else load_newest()
    flags, findings = normalise(launch.flags, schema)
    facts: dict[str, Any] = {"engine.version": launch.engine, "engine.known": schema.exact}
    facts.update({f"flag.{name}": value for name, value in flags.items()})
    facts.update({f"env.{name}": value for name, value in launch.env.items()})
    facts.update({f"host.{_GPU_NAMES.get(name, name)}": value for name, value in launch.gpu.items()})
    if "host.sm" in facts:
        facts["host.sm"] = _sm(facts["host.sm"])
    facts.setdefault("host.platform", "cuda")
    facts.update(_model_facts("model", launch.model))
    facts.update(_model_facts("draft", launch.draft_model))
    facts.update({f"package.{_normalised(name)}": value for name, value in launch.packages.items()})
    facts.update({f"host.{name}": value for name, value in launch.host.items()})
    facts.update({f"observed.{name}": value for name, value in launch.observed.items()})
    return facts, findings


def _normalised(distribution: str) -> str:
    """Normalise a distribution name as PyPI does: `sgl_kernel` becomes `sgl-kernel`."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _sm(value: Any) -> Any:
    """Return 120 for a compute capability in any notation: 120, "sm_120", "12.0", 12.0."""
    number = as_number(str(value).lower().removeprefix("sm").lstrip("_")) if value is not None else None
    if number is None:
        return value
    return round(number * 10) if number < 20 else int(number)


def from_case(case: Mapping[str, Any]) -> Launch:
    """Return the launch that a case file describes (`launch check --case`). Raises ValueError naming a faulty key."""
    parts = {}
    for name in ("flags", "env", "gpu", "model", "draft_model", "packages", "host", "observed"):
        value = case.get(name)
        if value is None:
            continue
        if name == "model" and isinstance(value, str):
            value = {"name": value}
        if not isinstance(value, Mapping):
            raise ValueError(f"`{name}` must be a mapping, but is of type {type(value).__name__}")
        parts[name] = _as_typed(value) if name == "flags" else value
    engine = case.get("engine_version") or case.get("engine")
    return Launch(engine=str(engine) if engine else None, **parts)


def _as_typed(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return flags as a profile has them: numbers as text, and lists of texts. Only JSON has numbers."""
    return {
        name: [str(item) for item in value] if isinstance(value, list) else str(value) if _is_number(value) else value
        for name, value in flags.items()
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def load_newest() -> FlagSchema:
    """Return the schema of the newest release, for launches whose engine is unknown."""
    return load("")


def _model_facts(prefix: str, model: Mapping[str, Any]) -> dict[str, Any]:
    facts = {f"{prefix}.{name}": value for name, value in model.items() if name != "quantization"}
    if "quantization" in model:
        written = model["quantization"] or {}
        quantization = {"quant_method": written} if isinstance(written, str) else written
        facts[f"{prefix}.quantized"] = bool(quantization)
        facts[f"{prefix}.quant_method"] = quantization.get("quant_method")
        facts.update({f"{prefix}.quant.{name}": value for name, value in quantization.items()})
    return facts
