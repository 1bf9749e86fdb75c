"""Attention and caching as a release resolves them: backends, pages, chunks, context, the state of hybrid models."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checks.facts.derived.attention import derive, mamba_strategy

HOPPER, BLACKWELL = {"host.sm": 90}, {"host.sm": 100}
DENSE, LATENT = {"model.mla": False}, {"model.mla": True}


def of(engine: str | None = "0.5.10", **facts: Any) -> dict[str, Any]:
    """Derived facts; keyword `page_size` stands for `flag.page-size`, `model__x` for `model.x`."""
    named = {
        name.replace("__", ".") if "__" in name else f"flag.{name.replace('_', '-')}": value
        for name, value in facts.items()
    }
    return {name.removeprefix("launch."): value for name, value in derive({"engine.version": engine, **named}).items()}


@pytest.mark.parametrize(
    ("sm", "mla", "engine", "backend"),
    [
        (90, False, "0.5.10", "fa3"),
        (90, True, "0.5.10", "fa3"),
        (100, False, "0.5.6", "flashinfer"),
        (100, False, "0.5.7", "trtllm_mha"),
        (103, False, "0.5.10", "trtllm_mha"),
        (110, False, "0.5.10", "flashinfer"),
        (120, False, "0.5.10", "flashinfer"),
        (100, True, "0.5.10", "flashinfer"),
        (120, True, "0.5.10", "triton"),
        (80, False, "0.5.10", "flashinfer"),
        (80, True, "0.5.10", "triton"),
    ],
)
def test_default_attention_backend_follows_gpu_and_model(sm: int, mla: bool, engine: str, backend: str) -> None:
    found = of(engine, host__sm=sm, model__mla=mla)
    names = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")
    assert {found[name] for name in names} == {backend}
    assert found["attention_split"] is False


@pytest.mark.parametrize(
    "facts",
    [
        {"model__mla": False},
        {"host__sm": 90},
        {"host__sm": 90, "model__mla": False, "engine": None},
        {"host__sm": 90, "model__mla": False, "host__platform": "rocm"},
        {"host__sm": 90, "model__mla": True, "model__dsa": True},
        {"host__sm": 90, "model__mla": False, "model__query_sparse_attention": True},
        {"host__sm": 100, "model__mla": False, "model__gdn": True},
    ],
)
def test_where_gpu_model_or_release_leave_it_open_no_default_is_named(facts: dict[str, Any]) -> None:
    found = of(**facts)
    assert not [name for name in found if name.endswith("attention_backend")]
    assert found["attention_split"] is False


@pytest.mark.parametrize(
    ("sm", "facts", "backend"),
    [
        (90, {"launch__spec_topk": 4}, "flashinfer"),
        (90, {"speculative_eagle_topk": "4"}, "flashinfer"),
        (90, {"launch__spec_topk": 1}, "fa3"),
        (90, {"model__gdn": True}, "fa3"),
        (100, {"launch__spec_topk": 4}, "flashinfer"),
        (100, {"speculative_algorithm": "EAGLE"}, "flashinfer"),
        (100, {"speculative_algorithm": "EAGLE", "speculative_eagle_topk": "1"}, "trtllm_mha"),
    ],
)
def test_a_tree_of_drafts_changes_the_default(sm: int, facts: dict[str, Any], backend: str) -> None:
    assert of(host__sm=sm, model__mla=False, **facts)["attention_backend"] == backend


@pytest.mark.parametrize(
    ("flags", "prefill", "decode", "whole", "split"),
    [
        ({"attention_backend": "triton"}, "triton", "triton", "triton", False),
        ({"prefill_attention_backend": "fa3", "decode_attention_backend": "fa3"}, "fa3", "fa3", "fa3", False),
        ({"prefill_attention_backend": "fa3", "decode_attention_backend": "triton"}, "fa3", "triton", None, True),
        ({"attention_backend": "triton", "decode_attention_backend": "fa3"}, "triton", "fa3", "triton", True),
        ({"decode_attention_backend": "fa3"}, None, "fa3", None, True),
    ],
)
def test_prefill_and_decode_may_have_backends_of_their_own(
    flags: dict[str, Any], prefill: str | None, decode: str, whole: str | None, split: bool
) -> None:
    found = of(**flags)
    assert (found.get("prefill_attention_backend"), found["decode_attention_backend"]) == (prefill, decode)
    assert (found.get("attention_backend"), found["attention_split"]) == (whole, split)


# --- pages and chunks


@pytest.mark.parametrize(
    ("backend", "asked", "size"),
    [
        ("triton", None, 1),
        ("triton", "16", 16),
        ("flashmla", "16", 64),
        ("cutlass_mla", None, 128),
        ("trtllm_mla", None, 64),
        ("trtllm_mla", "32", 32),
        ("trtllm_mla", "16", 64),
        ("trtllm_mha", "16", 16),
        ("trtllm_mha", "8", 64),
    ],
)
def test_a_decode_backend_raises_the_page_size_that_it_does_not_take(
    backend: str, asked: str | None, size: int
) -> None:
    assert of(attention_backend=backend, page_size=asked)["page_size"] == size
    assert of(prefill_attention_backend=backend, decode_attention_backend="triton", page_size=asked)[
        "page_size"
    ] == int(asked or 1)


@pytest.mark.parametrize(
    ("facts", "rest"),
    [
        ({"chunked_prefill_size": "4096"}, 0),
        ({"chunked_prefill_size": "4100"}, 4),
        ({"chunked_prefill_size": "-1"}, 0),
        ({}, None),
        ({"chunked_prefill_size": "4100", "disaggregation_mode": "decode"}, None),
        ({"chunked_prefill_size": "4096", "launch__dp_attention": True, "launch__dp_size": 8}, 0),
        ({"chunked_prefill_size": "4160", "launch__dp_attention": True, "launch__dp_size": 8}, 8),
        ({"chunked_prefill_size": "4096", "launch__dp_size": 7}, 0),
    ],
)
def test_attention_data_parallelism_divides_the_chunk_before_the_page_does(
    facts: dict[str, Any], rest: int | None
) -> None:
    assert of(page_size="64", **facts).get("chunk_mod_page") == rest


@pytest.mark.parametrize(("off", "cache"), [(True, False), (None, True)])
def test_the_prefix_cache_is_on_unless_it_is_switched_off(off: bool | None, cache: bool) -> None:
    assert of(disable_radix_cache=off)["radix_cache"] is cache


# --- context


def overriding(**values: Any) -> str:
    return json.dumps(values)


@pytest.mark.parametrize(
    ("facts", "over"),
    [
        ({}, True),
        ({"context_length": "32768"}, False),
        ({"json_model_override_args": overriding(max_position_embeddings=131072)}, False),
        ({"json_model_override_args": overriding(text_config={"max_position_embeddings": 131072})}, False),
        ({"json_model_override_args": overriding(rope_scaling={"rope_type": "yarn", "factor": 4.0})}, False),
        ({"json_model_override_args": overriding(rope_parameters={"rope_type": "yarn", "factor": 4})}, False),
        ({"json_model_override_args": overriding(rope_scaling={"rope_type": "yarn", "factor": 2})}, True),
        ({"json_model_override_args": overriding(rope_scaling={"rope_type": "llama3", "factor": 4})}, True),
        (
            {"json_model_override_args": overriding(rope_scaling={"factor": 4, "original_max_position_embeddings": 1})},
            True,
        ),
        ({"model__rope_scaling": {"rope_type": "yarn", "factor": 4}}, False),
        ({"json_model_override_args": "{broken"}, True),
        ({"json_model_override_args": "[1]"}, True),
    ],
)
def test_rope_scaling_widens_the_context_unless_it_names_its_origin(facts: dict[str, Any], over: bool) -> None:
    asked = {"context_length": "131072", "model__max_position_embeddings": 32768}
    assert of(**{**asked, **facts})["context_over"] is over


def test_an_override_of_rope_scaling_is_noticed() -> None:
    assert of(json_model_override_args=overriding(rope_scaling={"factor": 2}))["rope_scaling_override"] is True
    assert of(model__rope_scaling={"factor": 2})["rope_scaling_override"] is False
    assert "context_over" not in of(context_length="8k")
    assert "context_over" not in of(model__max_position_embeddings=8192)


# --- hybrid models


@pytest.mark.parametrize(
    ("engine", "facts", "strategy"),
    [
        ("0.5.13", {}, "no_buffer"),
        ("0.5.14", {}, "extra_buffer"),
        ("0.5.14", {"flag.disable-overlap-schedule": True}, "no_buffer"),
        ("0.5.14", {"flag.disable-overlap-schedule": True, "flag.page-size": "64"}, "extra_buffer"),
        ("0.5.14", {"flag.disable-overlap-schedule": True, "flag.page-size": "1"}, "no_buffer"),
        ("0.5.14", {"flag.linear-attn-backend": "flashinfer"}, "no_buffer"),
        ("0.5.14", {"model.recurrent": "short-conv"}, "no_buffer"),
        ("0.5.10", {"flag.mamba-radix-cache-strategy": "extra_buffer"}, "extra_buffer"),
        ("0.5.14", {"flag.mamba-radix-cache-strategy": "auto"}, "extra_buffer"),
        (None, {}, None),
        (None, {"flag.mamba-radix-cache-strategy": "no_buffer"}, "no_buffer"),
        ("0.5.14", {"model.hybrid": False}, None),
    ],
)
def test_auto_state_strategy_is_resolved_per_release(
    engine: str | None, facts: dict[str, Any], strategy: str | None
) -> None:
    asked = {"engine.version": engine, "model.hybrid": True, **facts}
    assert mamba_strategy(asked) == derive(asked).get("launch.mamba_strategy") == strategy


@pytest.mark.parametrize(
    ("facts", "decode", "prefill", "verify"),
    [
        ({}, "triton", "triton", "triton"),
        ({"linear_attn_backend": "cutedsl"}, "cutedsl", "cutedsl", "cutedsl"),
        ({"linear_attn_decode_backend": "x"}, "x", "triton", "x"),
        ({"linear_attn_prefill_backend": "x", "linear_attn_verify_backend": "y"}, "triton", "x", "y"),
        ({"host__sm": 100, "mamba_ssm_dtype": "bfloat16"}, "flashinfer", "triton", "flashinfer"),
        ({"host__sm": 100, "mamba_ssm_dtype": "float32"}, "triton", "triton", "triton"),
        ({"host__sm": 120, "mamba_ssm_dtype": "bfloat16"}, "triton", "triton", "triton"),
        ({"host__sm": 100, "mamba_ssm_dtype": "bfloat16", "engine": "0.5.12"}, "triton", "triton", "triton"),
        ({"host__sm": 100, "mamba_ssm_dtype": "bfloat16", "engine": None}, "triton", "triton", "triton"),
    ],
)
def test_linear_attention_decodes_by_flashinfer_on_sm100_with_bfloat16_state(
    facts: dict[str, Any], decode: str, prefill: str, verify: str
) -> None:
    found = of(**{"engine": "0.5.13", **facts})
    assert [found[f"linear_{name}_backend"] for name in ("decode", "prefill", "verify")] == [decode, prefill, verify]
