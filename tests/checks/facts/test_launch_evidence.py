"""Facts about a launch that need arithmetic: sizes, speculation, attention, graphs, parsers."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts import derived


def facts(engine: str = "0.5.10", **given: Any) -> dict[str, Any]:
    """Facts of a launch; keyword `flag__tp_size` stands for `flag.tp-size`, `host__sm` for `host.sm`."""
    named = {"engine.version": engine, "host.platform": "cuda"}
    for key, value in given.items():
        space, _, name = key.partition("__")
        named[f"{space}.{name.replace('_', '-') if space == 'flag' else name}"] = value
    return derived.extend(named)


@pytest.mark.parametrize(
    ("given", "triple"),
    [
        ({}, "none"),
        ({"flag__speculative_eagle_topk": "1", "flag__speculative_num_draft_tokens": "2"}, "partial"),
        ({"flag__speculative_num_steps": "3"}, "partial"),
        ({"flag__speculative_num_steps": "3", "flag__speculative_eagle_topk": "1"}, "complete"),
        ({"flag__speculative_num_steps": "3", "flag__speculative_eagle_topk": "4"}, "partial"),
    ],
)
def test_a_chain_needs_no_draft_tokens_but_steps_and_topk(given: dict[str, str], triple: str) -> None:
    assert facts(flag__speculative_algorithm="eagle", **given)["launch.spec_triple"] == triple


def test_draft_tokens_of_a_chain_are_steps_plus_one_whatever_was_asked() -> None:
    asked = {"flag__speculative_num_steps": "3", "flag__speculative_eagle_topk": "1"}
    found = facts(flag__speculative_algorithm="NEXTN", flag__speculative_num_draft_tokens="8", **asked)
    assert found["launch.spec_draft_tokens"] == 4


def test_llama_drafts_a_tree_when_nothing_is_asked() -> None:
    llama = facts(flag__speculative_algorithm="EAGLE3", model__architectures=["LlamaForCausalLM"])
    qwen = facts(flag__speculative_algorithm="EAGLE3", model__architectures=["Qwen3ForCausalLM"])
    assert (llama["launch.spec_topk"], qwen["launch.spec_topk"]) == (4, 1)


@pytest.mark.parametrize(
    ("engine", "env", "overlapped"),
    [
        ("0.5.10", None, False),
        ("0.5.10", "1", True),
        ("0.5.11", None, True),
        ("0.5.12", "0", False),
        ("0.5.14", "0", True),
    ],
)
def test_the_switch_of_overlapped_speculation_moved(engine: str, env: str | None, overlapped: bool) -> None:
    given = {"env__SGLANG_ENABLE_SPEC_V2": env} if env else {}
    assert facts(engine, flag__speculative_algorithm="EAGLE", **given)["launch.spec_v2"] is overlapped


def test_without_a_known_limit_nothing_is_said_about_running_past_it() -> None:
    assert "launch.spec_past_context" not in facts(flag__speculative_algorithm="NEXTN", flag__context_length="4096")


@pytest.mark.parametrize(
    ("engine", "given", "strategy"),
    [
        ("0.5.10", {}, "no_buffer"),
        ("0.5.14", {}, "extra_buffer"),
        ("0.5.14", {"flag__disable_overlap_schedule": True}, "no_buffer"),
        ("0.5.14", {"flag__linear_attn_backend": "flashinfer"}, "no_buffer"),
        ("0.5.10", {"flag__mamba_radix_cache_strategy": "extra_buffer"}, "extra_buffer"),
    ],
)
def test_auto_state_strategy_is_resolved_per_release(engine: str, given: dict[str, Any], strategy: str) -> None:
    assert facts(engine, model__architectures=["Qwen3NextForCausalLM"], **given)["launch.mamba_strategy"] == strategy


def test_a_dense_model_has_no_state_strategy() -> None:
    assert "launch.mamba_strategy" not in facts(model__architectures=["LlamaForCausalLM"])


@pytest.mark.parametrize(
    ("sm", "architecture", "backend"),
    [
        (90, "LlamaForCausalLM", "fa3"),
        (100, "LlamaForCausalLM", "trtllm_mha"),
        (120, "LlamaForCausalLM", "flashinfer"),
        (90, "DeepseekV3ForCausalLM", "fa3"),
        (100, "DeepseekV3ForCausalLM", "flashinfer"),
        (120, "DeepseekV3ForCausalLM", "triton"),
    ],
)
def test_default_attention_backend_follows_gpu_and_model(sm: int, architecture: str, backend: str) -> None:
    assert facts(host__sm=sm, model__architectures=[architecture])["launch.decode_attention_backend"] == backend


def test_default_attention_backend_is_unknown_without_a_gpu() -> None:
    assert "launch.decode_attention_backend" not in facts(model__architectures=["LlamaForCausalLM"])


def test_a_backend_raises_the_page_size() -> None:
    assert facts(flag__attention_backend="trtllm_mla")["launch.page_size"] == 64
    assert facts(flag__attention_backend="trtllm_mla", flag__page_size="32")["launch.page_size"] == 32


def test_attention_data_parallelism_divides_the_chunk_before_the_page_does() -> None:
    sizes: dict[str, Any] = {
        "flag__tp_size": "8",
        "flag__dp_size": "8",
        "flag__enable_dp_attention": True,
        "flag__page_size": "64",
    }
    assert facts(flag__chunked_prefill_size="4096", **sizes)["launch.chunk_mod_page"] == 0
    assert facts(flag__chunked_prefill_size="4160", **sizes)["launch.chunk_mod_page"] == 520 % 64


def test_rope_scaling_widens_the_context_unless_it_names_its_origin() -> None:
    scaled = '{"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}'
    origin = '{"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}'
    asked: dict[str, Any] = {"flag__context_length": "131072", "model__max_position_embeddings": 32768}
    assert facts(flag__json_model_override_args=scaled, **asked)["launch.context_over"] is False
    assert facts(flag__json_model_override_args=origin, **asked)["launch.context_over"] is True


def test_sizes_that_are_no_numbers_derive_nothing() -> None:
    assert "launch.tp_size" not in facts(flag__tp_size="eight")


def test_expert_size_follows_tensor_size_with_an_all_to_all_backend() -> None:
    assert facts(flag__tp_size="8", flag__ep_size="2", flag__moe_a2a_backend="deepep")["launch.ep_size"] == 8


@pytest.mark.parametrize(
    ("engine", "given", "backend"),
    [
        ("0.5.9", {}, "disabled"),
        ("0.5.9", {"flag__enable_piecewise_cuda_graph": True}, "tc_piecewise"),
        ("0.5.10", {}, "tc_piecewise"),
        ("0.5.10", {"flag__speculative_algorithm": "EAGLE"}, "disabled"),
        ("0.5.16", {"flag__speculative_algorithm": "EAGLE"}, "breakable"),
        ("0.5.20", {"flag__cuda_graph_backend_prefill": "disabled"}, "disabled"),
    ],
)
def test_prefill_graphs_are_opt_in_then_default_then_breakable(
    engine: str, given: dict[str, Any], backend: str
) -> None:
    assert facts(engine, **given)["launch.prefill_graph"] == backend


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3-coder"),
        ("Qwen/Qwen3.6-35B-A3B-FP8", "qwen3.5"),
        ("Qwen/Qwen3-30B-A3B", "qwen3"),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek-v3.1"),
        ("zai-org/GLM-4.6", "glm-4.5"),
        ("nvidia/GLM-5.2-NVFP4", "glm-4.7"),
        ("moonshotai/Kimi-K2-Thinking", "kimi-k2"),
    ],
)
def test_the_most_specific_family_is_named(name: str, family: str) -> None:
    assert facts(model__name=name)["model.family"] == family


def test_what_the_caller_knows_of_a_model_is_not_replaced() -> None:
    assert facts(model__architectures=["Qwen3NextForCausalLM"], model__hybrid=False)["model.hybrid"] is False


def test_a_parser_of_an_unknown_family_is_not_judged() -> None:
    assert "launch.tool_parser_fits" not in facts(model__name="own/model", flag__tool_call_parser="hermes")


def test_a_parser_that_reads_the_template_always_fits() -> None:
    assert facts(model__name="Qwen/Qwen3.5-397B-A17B", flag__tool_call_parser="auto")["launch.tool_parser_fits"] is True
