"""Derive facts about captured prefill graphs: the backend a release uses, and whether its buckets fit the context.

`memory_estimate` covers the memory of graphs.
"""

from __future__ import annotations

from typing import Any

from checks.catalog.conditions import Facts, as_number
from checks.vocabulary import EngineRange

_OPT_IN = EngineRange(">=0.5.4,<0.5.10")
_ON_BY_DEFAULT = EngineRange(">=0.5.10")
_BREAKABLE_BY_DEFAULT = EngineRange(">=0.5.15")  # 0.5.15:srt/model_executor/cuda_graph_config.py:101
_SPECULATES_WITHOUT = EngineRange("<0.5.14")  # 0.5.10:srt/server_args.py:1089 switches it off under speculation
_SMALLEST_DEFAULT = 2048  # largest bucket of MLA models and of small GPUs (0.5.10:srt/server_args.py:1254)


def derive(facts: Facts) -> dict[str, Any]:
    """Return `launch.` prefill_graph (`tc_piecewise breakable full disabled`), prefill_graph_over_context, and more."""
    version = facts.get("engine.version")
    batches = facts.get("flag.cuda-graph-bs-decode")
    found: dict[str, Any] = {"launch.graph_batch_below_one": _below_one(batches)} if batches is not None else {}
    if not version:
        return found
    backend = _backend(facts, version)
    found["launch.prefill_graph"] = backend
    context = as_number(facts.get("flag.context-length"))
    if context:
        chunk = as_number(facts.get("flag.chunked-prefill-size")) or 0
        bucket = as_number(facts.get("flag.cuda-graph-max-bs-prefill")) or (chunk if chunk > 0 else _SMALLEST_DEFAULT)
        found["launch.prefill_graph_over_context"] = backend != "disabled" and bucket > context
    return found


def _below_one(batches: Any) -> bool:
    words = batches if isinstance(batches, list | tuple) else str(batches).split()
    return any(number is not None and number < 1 for number in map(as_number, words))


def _backend(facts: Facts, version: str) -> str:
    asked = facts.get("flag.cuda-graph-backend-prefill")
    if asked:
        return str(asked)
    if facts.get("flag.disable-piecewise-cuda-graph") or facts.get("flag.disable-cuda-graph"):
        return "disabled"
    if facts.get("flag.enable-breakable-cuda-graph"):
        return "breakable"
    if facts.get("flag.enforce-piecewise-cuda-graph"):
        return "tc_piecewise"
    if _OPT_IN.contains(version):
        return "tc_piecewise" if facts.get("flag.enable-piecewise-cuda-graph") else "disabled"
    if not _ON_BY_DEFAULT.contains(version) or _switched_off(facts, version):
        return "disabled"
    return "breakable" if _BREAKABLE_BY_DEFAULT.contains(version) else "tc_piecewise"


def _switched_off(facts: Facts, version: str) -> bool:
    """Return whether the release disables prefill graphs automatically (0.5.10:srt/server_args.py:1078)."""
    flags = ("enable-torch-compile", "enable-lora", "lora-paths", "enable-hierarchical-cache", "enable-symm-mem")
    return (
        (bool(facts.get("launch.speculative")) and _SPECULATES_WITHOUT.contains(version))
        or bool(facts.get("launch.dp_attention"))
        or (facts.get("launch.pp_size") or 1) > 1
        or str(facts.get("flag.moe-a2a-backend") or "none") != "none"
        or str(facts.get("flag.disaggregation-mode") or "null") != "null"
        or facts.get("host.platform", "cuda") != "cuda"
        or any(facts.get(f"flag.{name}") for name in flags)
    )
