"""Derive facts about memory: the result of `memory_estimate`, and whether the GPUs have the same free memory.

There is no fact within the error margin: a rule that needs certainty tests for `false`, not for "not true".
"""

from __future__ import annotations

from typing import Any

from checks.catalog.conditions import Facts, as_number
from checks.facts.derived.memory_estimate import Estimate, estimate, reserve_gib

_UNEVEN = 0.9  # the engine's own limit: 0.5.9:srt/model_executor/model_runner.py:841


def derive(facts: Facts) -> dict[str, Any]:
    """Return `launch.weights_fit pool_empty reserve_small context_fits ...` and `host.gpu_free_uneven gpu_busy`."""
    derived = {**_free_memory(facts), **_pool_limit(facts), **_reserve(facts), **_state_slots(facts)}
    found = estimate(facts)
    if found:
        derived.update(_verdicts(facts, found))
    return derived


def _verdicts(facts: Facts, found: Estimate) -> dict[str, Any]:
    weights = next(item for item in found.items if item.name == "weights")
    derived: dict[str, Any] = {
        "launch.weights_gib": round((weights.low + weights.high) / 2, 1),
        "launch.vram_gib": round(sum(found.vram) / 2, 1),
        "launch.memory_lines": list(found.lines),
        "launch.memory_measured": found.measured,
    }
    if found.fits is not None:
        derived["launch.weights_fit"] = found.fits
    derived["launch.weights_too_large"] = found.fits is False
    low, high = found.pool
    if high < 0:
        derived["launch.pool_empty"] = True
    elif low > 0:
        derived["launch.pool_empty"] = False
    context = as_number(facts.get("flag.context-length")) or as_number(facts.get("model.max_position_embeddings"))
    if found.tokens and context:
        derived["launch.pool_tokens"] = found.tokens[1]
        if found.tokens[1] < context:
            derived["launch.context_fits"] = False
    free = _free_list(facts)
    if free and min(free) < weights.low:
        derived["launch.weights_fit_free_memory"] = False
    return derived


def _free_list(facts: Facts) -> list[float]:
    """Return the free GiB of the GPUs that the launch will use, in order."""
    listed = facts.get("host.gpu_free_gb")
    free = [number for item in listed if (number := as_number(item)) is not None] if isinstance(listed, list) else []
    step = int(as_number(facts.get("flag.gpu-id-step")) or 1)
    first = int(as_number(facts.get("flag.base-gpu-id")) or 0)
    nodes = int(as_number(facts.get("flag.nnodes")) or 1)
    ranks = (as_number(facts.get("flag.tp-size")) or 1) * (as_number(facts.get("flag.pp-size")) or 1)
    return free[first : first + max(1, int(ranks) // nodes) * step : max(1, step)]


def _free_memory(facts: Facts) -> dict[str, Any]:
    free = _free_list(facts)
    if not free:
        return {}
    derived: dict[str, Any] = {"host.gpu_free_uneven": min(free) < _UNEVEN * max(free), "host.gpu_free_min": min(free)}
    vram = as_number(facts.get("host.vram_gb"))
    if vram:
        derived["host.gpu_busy"] = min(free) < _UNEVEN * vram
        share = as_number(facts.get("flag.mem-fraction-static"))
        derived["host.gpu_free_below_static"] = min(free) < vram * (share or 0.5)
    return derived


def _pool_limit(facts: Facts) -> dict[str, Any]:
    limit = as_number(facts.get("flag.max-total-tokens"))
    context = as_number(facts.get("flag.context-length")) or as_number(facts.get("model.max_position_embeddings"))
    if limit is None or context is None:
        return {}
    return {"launch.token_limit_below_context": limit < context}


def _reserve(facts: Facts) -> dict[str, Any]:
    vram = as_number(facts.get("host.vram_gb"))
    share = as_number(facts.get("flag.mem-fraction-static"))
    if not vram or not share:
        return {}
    reserve, wanted = vram * (1 - share), reserve_gib(facts, vram)
    return {
        "launch.reserve_gib": round(reserve, 1),
        "launch.reserve_wanted_gib": round(wanted, 1),
        "launch.reserve_small": reserve < 0.5 * wanted,
    }


def _state_slots(facts: Facts) -> dict[str, Any]:
    """Return the states of a hybrid model per running request (0.5.23:srt/mem_cache/kv_cache_configurator.py:3066)."""
    slots, wanted = as_number(facts.get("flag.max-mamba-cache-size")), as_number(facts.get("flag.max-running-requests"))
    if facts.get("flag.disable-radix-cache") is True:
        per_request = 1
    else:
        per_request = 5 if str(facts.get("launch.mamba_strategy") or "").startswith("extra_buffer") else 3
    derived: dict[str, Any] = {"launch.state_slots_per_request": per_request}
    if slots is not None and wanted is not None:
        derived["launch.state_slots_short"] = slots < wanted * per_request
    return derived
