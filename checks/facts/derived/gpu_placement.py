"""Compare the GPUs that the ranks of one node use with those that a process can see."""

from __future__ import annotations

from itertools import takewhile
from math import ceil
from typing import Any

from checks.catalog.conditions import Facts, as_number


def derive(facts: Facts) -> dict[str, Any]:
    """Return `launch.gpus_missing`: how many more GPUs the highest rank of a node needs than are visible, 0 or more.

    The engine gives rank `i` of a node the GPU `base-gpu-id + i × gpu-id-step` of those in CUDA_VISIBLE_DEVICES
    (0.5.11:srt/entrypoints/engine.py). A process sees at most one MIG slice (NVIDIA's Multi-Instance GPU guide).
    """
    wanted, nodes = as_number(facts.get("launch.gpus_wanted")), as_number(facts.get("launch.nnodes"))
    available = _available(facts)
    on_cuda = facts.get("host.platform", "cuda") == "cuda" and facts.get("flag.device") in (None, "cuda")
    if not wanted or not nodes or available is None or not on_cuda:
        return {}
    base, step = (as_number(facts.get(f"flag.{name}")) for name in ("base-gpu-id", "gpu-id-step"))
    highest = int(base or 0) + (ceil(wanted / nodes) - 1) * int(step or 1) + 1
    return {"launch.gpus_missing": max(0, highest - available), "host.gpus_usable": available}


def _exists(part: str, counts: list[int], facts: Facts) -> bool:
    """Whether CUDA finds the GPU of one part of CUDA_VISIBLE_DEVICES: an index, or the beginning of an identifier."""
    if part.isdigit():
        return not counts or int(part) < counts[0]
    known = facts.get("host.gpu_ids") or []
    return not part.startswith("GPU-") or not known or any(str(item).startswith(part) for item in known)


def _available(facts: Facts) -> int | None:
    counts = [as_number(facts.get(name)) for name in ("host.gpus_visible", "host.gpu_count")]
    known = [int(count) for count in counts if count]  # the first is measured
    listed = [part.strip() for part in str(facts.get("env.CUDA_VISIBLE_DEVICES") or "").split(",") if part.strip()]
    if listed:  # CUDA stops at the first GPU that does not exist
        known.append(len(list(takewhile(lambda part: _exists(part, known, facts), listed))))
    if facts.get("host.gpu_slice") is True:
        known.append(1)
    return min(known, default=None)
