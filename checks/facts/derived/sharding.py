"""Derive facts about sharding a model over GPUs: heads, experts and quantisation blocks against parallel sizes.

Sizes come from the flags as the engine resolves them; `parallel` derives the layout, `memory_estimate` the bytes.
"""

from __future__ import annotations

from typing import Any

from checks.catalog.conditions import Facts, as_number


def derive(facts: Facts) -> dict[str, Any]:
    """Return `launch.attention_tp heads_divisible vision_heads_divisible moe_tp expert_slice fp8_block_split ...`."""
    attention_tp = _whole(facts, "launch.attention_tp_size")
    if not attention_tp:
        return {}
    attention_tp = max(1, attention_tp // int(as_number(facts.get("flag.attn-cp-size")) or 1))
    derived: dict[str, Any] = {"launch.attention_tp": attention_tp}
    heads = _whole(facts, "model.num_attention_heads")
    if heads:
        derived["launch.heads_divisible"] = heads % attention_tp == 0
    kv_heads = _whole(facts, "model.num_key_value_heads")
    if kv_heads and facts.get("model.mla") is False:
        derived["launch.kv_heads_divisible"] = max(kv_heads, attention_tp) % min(kv_heads, attention_tp) == 0
    vision = _whole(facts, "model.vision_num_heads")
    if vision:
        derived["launch.vision_heads_divisible"] = vision % attention_tp == 0
    derived.update(_expert_slices(facts))
    rows = _query_rows(facts)
    if rows:
        derived["launch.query_rows"] = rows
    return derived


def _query_rows(facts: Facts) -> int | None:
    """Return the query rows per KV head while draft tokens are verified: query heads per KV head × draft tokens."""
    heads, kv_heads = _whole(facts, "model.num_attention_heads"), _whole(facts, "model.num_key_value_heads")
    steps = _whole(facts, "flag.speculative-num-steps")
    drafts = _whole(facts, "flag.speculative-num-draft-tokens") or (steps + 1 if steps else None)
    return heads // kv_heads * drafts if heads and kv_heads and drafts else None


def _expert_slices(facts: Facts) -> dict[str, Any]:
    tp, ep = _whole(facts, "launch.tp_size") or 1, _whole(facts, "launch.ep_size") or 1
    if facts.get("flag.enable-ep-moe") is True or facts.get("flag.enable-deepep-moe") is True:
        ep = tp
    moe_tp = max(1, tp // ep)
    derived: dict[str, Any] = {"launch.moe_tp": moe_tp}
    size = _whole(facts, "model.moe_intermediate_size")
    dense = _whole(facts, "model.intermediate_size")
    block = _whole(facts, "model.block_n")
    if size:
        derived["launch.expert_slice"] = size / moe_tp if size % moe_tp else size // moe_tp
        if block:
            derived["launch.fp8_block_split"] = size % (moe_tp * block) != 0
    if dense and block:
        derived["launch.fp8_dense_block_split"] = dense % (tp * block) != 0
    experts = _whole(facts, "model.num_experts") or _whole(facts, "model.n_routed_experts")
    redundant = int(as_number(facts.get("flag.ep-num-redundant-experts")) or 0)
    if experts:
        derived["launch.experts_divisible"] = (experts + redundant) % ep == 0
    return derived


def _whole(facts: Facts, name: str) -> int | None:
    number = as_number(facts.get(name))
    return int(number) if number else None
