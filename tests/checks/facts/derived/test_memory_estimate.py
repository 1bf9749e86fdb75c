"""The memory estimate against launches whose outcome is known, and its promise never to refuse inside its error bar."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.derived import memory_estimate

QWEN3_32B = {
    "model.name": "Qwen/Qwen3-32B",
    "model.quantized": False,
    "model.weight_bits": 16,
    "model.num_hidden_layers": 64,
    "model.num_attention_heads": 64,
    "model.num_key_value_heads": 8,
    "model.head_dim": 128,
    "model.hybrid": False,
    "model.mla": False,
}


def deepseek_r1(vram_gb: float, tp: int) -> dict[str, Any]:
    return {"model.weights_gb": 689, "host.vram_gb": vram_gb, "flag.tp-size": str(tp)}


def found(facts: dict[str, Any]) -> memory_estimate.Estimate:
    estimate = memory_estimate.estimate(facts)
    assert estimate is not None
    return estimate


def test_689_gb_do_not_fit_one_h200() -> None:
    assert found(deepseek_r1(141, 1)).fits is False


def test_689_gb_fit_eight_h200() -> None:
    estimate = found(deepseek_r1(141, 8))
    assert estimate.fits is True
    assert estimate.pool[0] > 0


def test_the_share_of_a_rank_is_counted_in_binary_gigabytes() -> None:
    weights = found(deepseek_r1(141, 8)).items[0]
    assert weights.low < 689 / 8 / 1.0737 < weights.high


@pytest.mark.parametrize("size", [66, 70, 74, 78, 82])
def test_inside_the_error_bar_nothing_is_claimed(size: float) -> None:
    estimate = found({"model.weights_gb": size, "host.vram_gb": 80})
    low, high = estimate.needed
    assert (estimate.fits is False) == (low > estimate.vram[1])
    assert (estimate.fits is True) == (high < estimate.vram[0])


def test_a_size_near_the_limit_is_left_open() -> None:
    assert found({"model.weights_gb": 80, "host.vram_gb": 80}).fits is None


def test_more_ranks_never_need_more_memory_each() -> None:
    needs = [found(deepseek_r1(141, tp)).needed[0] for tp in (1, 2, 4, 8, 16)]
    assert needs == sorted(needs, reverse=True)


def test_a_measured_size_goes_before_the_name() -> None:
    assert memory_estimate.weights_gb({**QWEN3_32B, "model.weights_gb": 65.5}) == 65.5


def test_a_size_read_off_the_name_is_parameters_times_bits() -> None:
    assert memory_estimate.weights_gb(QWEN3_32B) == 64
    assert memory_estimate.weights_gb({"model.name": "Qwen3-30B-A3B-FP8", "model.weight_bits": 8}) == 30
    assert memory_estimate.weights_gb(
        {"model.name": "Qwen3.5-397B-A17B-NVFP4", "model.weight_bits": 4}
    ) == pytest.approx(233, 0.01)


@pytest.mark.parametrize("name", ["DeepSeek-V4-Flash", "Mixtral-8x7B-Instruct", "GLM-5.1-FP8"])
def test_a_name_without_a_plain_count_is_no_size(name: str) -> None:
    assert memory_estimate.weights_gb({"model.name": name, "model.weight_bits": 16}) is None


@pytest.mark.parametrize("missing", ["host.vram_gb", "model.weights_gb"])
def test_without_gpu_or_weights_there_is_no_estimate(missing: str) -> None:
    facts = deepseek_r1(141, 8)
    del facts[missing]
    assert memory_estimate.estimate(facts) is None


def test_a_token_of_grouped_query_attention_is_keys_and_values_of_every_layer() -> None:
    assert memory_estimate.kv_bytes_per_token({**QWEN3_32B, "flag.tp-size": "2"}) == 2 * 4 * 128 * 64 * 2


def test_more_ranks_than_kv_heads_repeat_a_head() -> None:
    assert memory_estimate.kv_bytes_per_token({**QWEN3_32B, "flag.tp-size": "16"}) == 2 * 1 * 128 * 64 * 2


def test_an_fp8_cache_halves_a_token() -> None:
    full = memory_estimate.kv_bytes_per_token(QWEN3_32B)
    half = memory_estimate.kv_bytes_per_token({**QWEN3_32B, "flag.kv-cache-dtype": "fp8_e4m3"})
    assert full is not None and half == full / 2


def test_latent_attention_is_not_divided_by_ranks() -> None:
    facts = {"model.mla": True, "model.num_hidden_layers": 61, "flag.tp-size": "8"}
    assert memory_estimate.kv_bytes_per_token(facts) == 61 * 576 * 2


def test_a_hybrid_model_caches_only_its_full_attention_layers() -> None:
    hybrid = {**QWEN3_32B, "model.hybrid": True}
    assert memory_estimate.kv_bytes_per_token(hybrid) is None
    assert memory_estimate.kv_bytes_per_token({**hybrid, "model.full_attention_interval": 4}) == 2 * 8 * 128 * 16 * 2


def test_tokens_need_the_layer_count() -> None:
    assert found({**QWEN3_32B, "host.vram_gb": 80}).tokens is not None
    assert found(deepseek_r1(141, 8)).tokens is None


def test_a_static_share_below_the_weights_leaves_an_empty_pool() -> None:
    facts = {"model.weights_gb": 62, "host.vram_gb": 80}
    assert found({**facts, "flag.mem-fraction-static": "0.5"}).pool[1] < 0
    assert found({**facts, "flag.mem-fraction-static": "0.9"}).pool[1] > 0


def test_offloaded_weights_do_not_count_at_the_low_end() -> None:
    plain = found(deepseek_r1(141, 8))
    offloaded = found({**deepseek_r1(141, 8), "flag.cpu-offload-gb": "20"})
    assert plain.needed[0] - offloaded.needed[0] == pytest.approx(20)


def test_speculation_adds_a_draft_and_ngram_does_not() -> None:
    facts = deepseek_r1(141, 8)
    assert [item.name for item in found({**facts, "flag.speculative-algorithm": "EAGLE"}).items] == [
        "weights", "draft", "context",
    ]  # fmt: skip
    assert "draft" not in [item.name for item in found({**facts, "flag.speculative-algorithm": "NGRAM"}).items]


def test_a_draft_model_of_its_own_counts_with_its_own_size() -> None:
    facts = {**deepseek_r1(141, 8), "flag.speculative-algorithm": "EAGLE3", "draft.weights_gb": 8}
    draft = next(item for item in found(facts).items if item.name == "draft")
    assert draft.low < 8 / 8 / 1.0737 < draft.high


def test_the_reserve_is_the_engines_own_formula() -> None:
    facts = {"flag.chunked-prefill-size": "8192", "flag.cuda-graph-max-bs-decode": "128", "flag.tp-size": "8"}
    assert memory_estimate.reserve_gib(facts, 80) == pytest.approx((512 + 8192 * 1.5 + 128 * 2 + 1024) / 1024)


def test_without_graphs_the_reserve_is_smaller() -> None:
    assert memory_estimate.reserve_gib({"flag.disable-cuda-graph": True}, 80) < memory_estimate.reserve_gib({}, 80)


def test_the_arithmetic_is_shown() -> None:
    lines = found({**QWEN3_32B, "host.vram_gb": 80, "flag.tp-size": "2"}).lines
    assert lines[0].startswith("weights: ") and "over 2 ranks" in lines[0]
    assert any(line.startswith("sum: ") for line in lines)
    assert lines[-1].startswith("tokens: ")
