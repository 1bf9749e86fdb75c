"""A model cut over GPUs: heads, experts and quantisation blocks that divide or leave a rest."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.derived.sharding import derive


def of(tp: int = 1, ep: int = 1, attention: int | None = None, **facts: Any) -> dict[str, Any]:
    """Facts of a layout; keyword `flag__x_y` stands for `flag.x-y`, any other for `model.x_y`."""
    named = {
        f"flag.{name[6:].replace('_', '-')}" if name.startswith("flag__") else f"model.{name}": value
        for name, value in facts.items()
    }
    layout = {"launch.tp_size": tp, "launch.ep_size": ep, "launch.attention_tp_size": attention or tp}
    return {name.removeprefix("launch."): value for name, value in derive({**layout, **named}).items()}


def test_without_a_layout_nothing_is_said() -> None:
    assert derive({"model.num_attention_heads": 16}) == {}


@pytest.mark.parametrize(("heads", "tp", "divides"), [(64, 8, True), (40, 8, True), (36, 8, False), (8, 16, False)])
def test_query_heads_divide_over_the_ranks_of_attention(heads: int, tp: int, divides: bool) -> None:
    assert of(tp, num_attention_heads=heads)["heads_divisible"] is divides
    assert of(16, attention=tp, num_attention_heads=heads)["heads_divisible"] is divides


def test_context_parallel_attention_takes_ranks_away() -> None:
    assert of(8, flag__attn_cp_size="2")["attention_tp"] == 4
    assert of(8, flag__attn_cp_size="16")["attention_tp"] == 1
    assert of(8, num_attention_heads=36, flag__attn_cp_size="2")["heads_divisible"] is True


@pytest.mark.parametrize(
    ("kv_heads", "tp", "divides"), [(2, 8, True), (8, 2, True), (2, 3, False), (8, 8, True), (6, 4, False)]
)
def test_fewer_kv_heads_than_ranks_may_be_repeated(kv_heads: int, tp: int, divides: bool) -> None:
    assert of(tp, num_key_value_heads=kv_heads, mla=False)["kv_heads_divisible"] is divides


@pytest.mark.parametrize("mla", [True, None])
def test_latent_attention_has_no_kv_heads_to_divide(mla: bool | None) -> None:
    assert "kv_heads_divisible" not in of(3, num_key_value_heads=2, mla=mla)


def test_heads_of_the_vision_part_are_counted_by_themselves() -> None:
    assert of(8, vision_num_heads=16)["vision_heads_divisible"] is True
    assert of(8, vision_num_heads=12)["vision_heads_divisible"] is False


@pytest.mark.parametrize(
    ("tp", "ep", "flags", "moe_tp", "piece"),
    [
        (8, 1, {}, 8, 192),
        (8, 8, {}, 1, 1536),
        (8, 2, {}, 4, 384),
        (8, 1, {"flag__enable_ep_moe": True}, 1, 1536),
        (8, 1, {"flag__enable_deepep_moe": True}, 1, 1536),
        (5, 1, {}, 5, 307.2),
        (2, 8, {}, 1, 1536),
    ],
)
def test_an_expert_is_cut_by_what_expert_parallelism_leaves(
    tp: int, ep: int, flags: dict[str, Any], moe_tp: int, piece: float
) -> None:
    found = of(tp, ep, moe_intermediate_size=1536, **flags)
    assert (found["moe_tp"], found["expert_slice"]) == (moe_tp, piece)


def test_an_fp8_block_is_split_by_tp_and_not_by_ep() -> None:
    sizes = {"moe_intermediate_size": 1536, "block_n": 128}
    assert of(8, **sizes)["fp8_block_split"] is True
    assert of(8, 2, **sizes)["fp8_block_split"] is False
    assert of(4, **sizes)["fp8_block_split"] is False
    assert "fp8_block_split" not in of(8, moe_intermediate_size=1536)


def test_dense_layers_are_split_by_all_of_tp() -> None:
    assert of(8, 8, intermediate_size=18432, block_n=128)["fp8_dense_block_split"] is False
    assert of(8, 8, intermediate_size=1536, block_n=128)["fp8_dense_block_split"] is True


@pytest.mark.parametrize(
    ("count", "ep", "redundant", "divides"),
    [
        ("num_experts", 8, None, True),
        ("n_routed_experts", 3, None, False),
        ("num_experts", 12, "8", True),
        ("num_experts", 8, "3", False),
    ],
)
def test_experts_with_their_copies_divide_over_ep(count: str, ep: int, redundant: str | None, divides: bool) -> None:
    assert of(24, ep, **{count: 256}, flag__ep_num_redundant_experts=redundant)["experts_divisible"] is divides


@pytest.mark.parametrize(
    ("flags", "rows"),
    [
        ({"flag__speculative_num_draft_tokens": "6"}, 48),
        ({"flag__speculative_num_steps": "3"}, 32),
        ({"flag__speculative_num_steps": "3", "flag__speculative_num_draft_tokens": "6"}, 48),
        ({}, None),
    ],
)
def test_query_rows_are_heads_per_kv_head_times_draft_tokens(flags: dict[str, Any], rows: int | None) -> None:
    assert of(num_attention_heads=16, num_key_value_heads=2, **flags).get("query_rows") == rows
