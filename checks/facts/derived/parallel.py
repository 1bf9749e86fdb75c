"""Derive the parallel sizes (tp, dp, ep, pp, nodes) as the engine resolves them, and the remainders of their divisions.

Sizes only: `sharding` checks whether a model's heads and experts divide evenly.
"""

from __future__ import annotations

from typing import Any

from checks.catalog.conditions import Facts, as_number

# With these all-to-all backends, the expert-parallel size is the tensor-parallel size, whatever the flag
# (0.5.23:srt/arg_groups/moe_hook.py).
_EP_EQUALS_TP = ("deepep", "deepep_v2", "mooncake", "nixl", "mori", "flashinfer", "ascend_fuseep", "pplx", "megamoe")


def derive(facts: Facts) -> dict[str, Any]:
    """Return `launch.` tp_size pp_size dp_size ep_size nnodes dcp_size, dp_attention, and the remainders."""
    attention_dp = _size(facts, "attn-dp-size", 0)
    sizes = {name: _size(facts, f"{name}-size", 1) for name in ("tp", "pp", "dp", "ep", "dcp")}
    sizes["nnodes"] = _size(facts, "nnodes", 1)
    if any(value is None for value in sizes.values()) or attention_dp is None:
        return {}  # not numbers: the engine's parser rejects them, so there is nothing to derive
    tp, pp, dp, ep, dcp, nodes = (int(value or 1) for value in sizes.values())
    dp_attention = bool(facts.get("flag.enable-dp-attention")) or attention_dp > 1
    dp = max(dp, attention_dp) if attention_dp else dp
    if str(facts.get("flag.moe-a2a-backend") or "none") in _EP_EQUALS_TP:
        ep = tp
    return {
        "launch.tp_size": tp,
        "launch.pp_size": pp,
        "launch.dp_size": dp,
        "launch.ep_size": ep,
        "launch.dcp_size": dcp,
        "launch.nnodes": nodes,
        "launch.dp_attention": dp_attention,
        "launch.gpus_wanted": tp * pp * (1 if dp_attention else dp),
        "launch.attention_tp_size": tp // dp if dp_attention and dp and tp % dp == 0 else tp,
        "launch.world_mod_nnodes": (tp * pp) % nodes if nodes else 0,
        "launch.tp_mod_dp": tp % dp if dp_attention and dp else 0,
        "launch.ep_odd": ep not in (1, tp),
        "launch.ep_over_tp": bool(ep and tp % ep),
    }


def _size(facts: Facts, flag: str, default: int) -> int | None:
    value = facts.get(f"flag.{flag}")
    if value is None or value is False:
        return default
    number = as_number(value)
    return int(number) if number is not None and number == int(number) and number >= 0 else None
