"""Derive facts about communication between ranks: all-reduce paths, expert dispatch buffers, the rendezvous of nodes.

`parallel` derives the sizes of the parallel groups, `host` the limits of the host.
"""

from __future__ import annotations

import re
from typing import Any

from checks.catalog.conditions import Facts, as_number
from checks.vocabulary import EngineRange

_LOOPBACK = re.compile(r"^(\[?::1\]?|127\.[\d.]+|localhost|0\.0\.0\.0)(:|$)")
# Hidden sizes of DeepEP's low-latency kernels (csrc/kernels/launch.cuh, SWITCH_HIDDEN); the second row since 2025-09.
_DEEPEP_HIDDEN = (2048, 2560, 4096, 5120, 7168, 8192)
_DEEPEP_HIDDEN_LATER = (3072, 6144)
_BEFORE_LATER = EngineRange("<0.5.3")
_OWN_DEEPEP = EngineRange(">=0.5.18")  # depends on sgl-deep-ep, whose list is not known here
_DEFAULT_CHUNK = 8192


def derive(facts: Facts) -> dict[str, Any]:
    """Return `launch.` custom_all_reduce expandable_segments dispatch_* deepep_hidden_* rendezvous_* ...."""
    found = {**_all_reduce(facts), **_dispatch(facts), **_hidden(facts), **_nodes(facts), **_peers(facts)}
    return {name: value for name, value in found.items() if facts.get(name) is None}


def _all_reduce(facts: Facts) -> dict[str, Any]:
    allocator = f"{facts.get('env.PYTORCH_CUDA_ALLOC_CONF') or ''},{facts.get('env.PYTORCH_ALLOC_CONF') or ''}"
    ranks = as_number(facts.get("launch.tp_size")) or 1
    one_node = (as_number(facts.get("launch.nnodes")) or 1) == 1
    return {
        "launch.expandable_segments": bool(re.search(r"expandable_segments\s*:\s*true", allocator, re.IGNORECASE)),
        "launch.custom_all_reduce": ranks > 1 and one_node and not facts.get("flag.disable-custom-all-reduce"),
    }


def _dispatch(facts: Facts) -> dict[str, Any]:
    backend = str(facts.get("flag.moe-a2a-backend") or "none")
    chunk = as_number(facts.get("flag.chunked-prefill-size"))
    if backend == "mori":
        limit = as_number(facts.get("env.SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK")) or 4096
        found: dict[str, Any] = {"launch.dispatch_limit": int(limit)}
        if chunk is None:
            return found
        return {**found, "launch.chunk": int(chunk), "launch.mori_chunk_exceeds": chunk > limit}
    if backend not in ("deepep", "deepep_v2") or facts.get("flag.deepep-mode") == "normal":
        return {}
    limit = as_number(facts.get("env.SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK")) or 128
    found = {"launch.dispatch_limit": int(limit)}
    tokens = _graph_tokens(facts)
    if tokens is not None and facts.get("flag.disaggregation-mode") != "prefill":
        found |= {"launch.dispatch_tokens": int(tokens), "launch.dispatch_exceeds": tokens > limit}
    if facts.get("flag.deepep-mode") == "low_latency":
        prefills = facts.get("flag.disaggregation-mode") != "decode"
        found["launch.low_latency_prefill"] = prefills and (chunk or _DEFAULT_CHUNK) > limit
    return found


def _graph_tokens(facts: Facts) -> float | None:
    """Return the tokens of one rank's largest decode graph: its batch size times the draft tokens per request."""
    batch = as_number(facts.get("flag.cuda-graph-max-bs-decode"))
    if batch is None:
        return None
    requests = as_number(facts.get("flag.max-running-requests"))
    ranks = (as_number(facts.get("launch.dp_size")) or 1) if facts.get("launch.dp_attention") else 1
    if requests is not None:
        batch = min(batch, -(-requests // ranks))
    return batch * (as_number(facts.get("launch.spec_draft_tokens")) or 1)


def _hidden(facts: Facts) -> dict[str, Any]:
    hidden = as_number(facts.get("model.hidden_size"))
    backend = str(facts.get("flag.moe-a2a-backend") or "none")
    normal_only = facts.get("flag.deepep-mode") == "normal" or facts.get("flag.disaggregation-mode") == "prefill"
    if hidden is None or backend not in ("deepep", "deepep_v2") or normal_only or hidden in _DEEPEP_HIDDEN:
        return {}
    version = facts.get("engine.version")
    if hidden in _DEEPEP_HIDDEN_LATER:
        return {"launch.deepep_hidden_unsupported": bool(version) and _BEFORE_LATER.contains(version)}
    doubtful = not version or _OWN_DEEPEP.contains(version)
    return {"launch.deepep_hidden_unsupported": not doubtful, "launch.deepep_hidden_doubtful": doubtful}


def _nodes(facts: Facts) -> dict[str, Any]:
    address = str(facts.get("flag.dist-init-addr") or "")
    found: dict[str, Any] = {"launch.rendezvous_is_loopback": bool(_LOOPBACK.match(address))}
    nodes = as_number(facts.get("launch.nnodes")) or 1
    rank, cards = as_number(facts.get("flag.node-rank")), as_number(facts.get("host.gpu_count"))
    found["launch.node_rank_beyond"] = rank is not None and rank >= nodes
    if cards and nodes > 1:
        ranks = (as_number(facts.get("launch.tp_size")) or 1) * (as_number(facts.get("launch.pp_size")) or 1)
        found["launch.size_is_per_node"] = ranks == cards
    return found


def _peers(facts: Facts) -> dict[str, Any]:
    """Return `host.pcie_only`: the GPUs have no NVLink, as stated or as `nvidia-smi topo -m` shows."""
    if facts.get("host.nvlink") is not None:
        return {"host.pcie_only": facts["host.nvlink"] is False}
    topology = facts.get("host.topology")
    return {"host.pcie_only": not re.search(r"\bNV\d+|NVLink|nvlink", str(topology))} if topology else {}
