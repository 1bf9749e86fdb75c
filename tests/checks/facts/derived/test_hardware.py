"""Facts read off GPU names, checkpoint configurations and the cut of a model over GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts import derived
from checks.facts.derived import hardware, model_config, pins, sharding


@pytest.mark.parametrize(
    ("name", "sm"),
    [
        ("NVIDIA H100 80GB HBM3", 90),
        ("NVIDIA H200", 90),
        ("NVIDIA B200", 100),
        ("NVIDIA GB300", 103),
        ("NVIDIA GB10", 121),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 120),
        ("NVIDIA GeForce RTX 5090", 120),
        ("NVIDIA GeForce RTX 3090", 86),
        ("NVIDIA L40S", 89),
        ("NVIDIA L4", 89),
        ("NVIDIA A100-SXM4-80GB", 80),
        ("NVIDIA A10G", 86),
        ("Tesla T4", 75),
        ("Tesla V100-SXM2-32GB", 70),
    ],
)
def test_compute_capability_comes_from_the_name(name: str, sm: int) -> None:
    assert hardware.derive({"host.gpu_name": name})["host.sm"] == sm


def test_a_measured_value_is_not_replaced() -> None:
    assert "host.sm" not in hardware.derive({"host.gpu_name": "NVIDIA H100", "host.sm": 89})


def test_sm12x_is_blackwell_but_not_of_the_data_centre() -> None:
    facts = hardware.derive({"host.gpu_name": "RTX PRO 6000 Blackwell"})
    assert facts["host.blackwell"] and facts["host.sm12x"] and not facts["host.blackwell_datacenter"]


def test_an_amd_card_has_a_platform_and_no_cuda_traits() -> None:
    facts = hardware.derive({"host.gpu_name": "AMD Instinct MI300X", "host.platform": "cuda"})
    assert facts["host.platform"] == "rocm"
    assert "host.fp8_hardware" not in facts and "host.cuda_sm" not in facts


def test_an_unknown_card_yields_nothing() -> None:
    assert hardware.derive({"host.gpu_name": "Voodoo 2"}) == {"launch.platform_plugin": False}


@pytest.mark.parametrize(
    ("quantisation", "nvfp4", "fp8", "bits"),
    [
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, True, False, 4),
        ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}, True, False, 4),
        ({"quant_method": "compressed-tensors", "format": "float-quantized"}, False, True, 8),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, False, True, 8),
        ({"quant_method": "awq", "bits": 4}, False, False, 4),
        ({"quant_method": "w4afp8"}, False, False, 4),
        ({"quant_method": "mxfp4"}, False, False, 4),
    ],
)
def test_weight_format_comes_from_the_configuration(
    quantisation: dict[str, Any], nvfp4: bool, fp8: bool, bits: int
) -> None:
    facts = {"model.quantized": True, **{f"model.quant.{key}": value for key, value in quantisation.items()}}
    facts["model.quant_method"] = quantisation["quant_method"]
    found = model_config.derive(facts)
    assert (found["model.nvfp4"], found["model.fp8"], found["model.weight_bits"]) == (nvfp4, fp8, bits)


def test_a_name_speaks_only_where_no_configuration_is_known() -> None:
    assert model_config.derive({"model.name": "nvidia/GLM-5-NVFP4"})["model.nvfp4"] is True
    assert model_config.derive({"model.name": "nvidia/GLM-5-NVFP4", "model.quantized": False})["model.nvfp4"] is False


def test_the_architecture_goes_before_the_name() -> None:
    facts = {"model.name": "DeepSeek-R1-Distill-Llama-70B", "model.architectures": ["LlamaForCausalLM"]}
    assert model_config.derive(facts)["model.kind"] == "llama"


@pytest.mark.parametrize(
    ("asked", "method", "conflict"),
    [
        ("fp8", "fp8", False),
        ("modelopt_fp4", "modelopt", False),
        ("awq_marlin", "awq", False),
        ("awq", "gptq", True),
        ("fp8", "compressed-tensors", True),
        ("bitsandbytes", "awq", True),
    ],
)
def test_the_option_is_compared_with_the_checkpoint(asked: str, method: str, conflict: bool) -> None:
    facts = {"flag.quantization": asked, "model.quantized": True, "model.quant_method": method}
    assert model_config.derive(facts)["model.quant_conflict"] is conflict


def test_prepared_formats_on_a_plain_checkpoint_are_unfounded() -> None:
    facts = {"model.quantized": False, "model.quant_method": None}
    assert model_config.derive({**facts, "flag.quantization": "modelopt_fp4"})["model.quant_flag_unfounded"] is True
    assert model_config.derive({**facts, "flag.quantization": "fp8"})["model.quant_flag_unfounded"] is False


def layout(**sizes: int) -> dict[str, Any]:
    base = {"launch.tp_size": 1, "launch.ep_size": 1, "launch.attention_tp_size": 1}
    return {**base, **{f"launch.{name}": value for name, value in sizes.items()}}


def test_an_fp8_block_is_split_by_tp_and_not_by_ep() -> None:
    facts = {"model.moe_intermediate_size": 1536, "model.block_n": 128}
    eight = layout(tp_size=8, attention_tp_size=8)
    assert sharding.derive({**facts, **eight})["launch.fp8_block_split"] is True
    assert sharding.derive({**facts, **eight, "launch.ep_size": 2})["launch.fp8_block_split"] is False


def test_fewer_kv_heads_than_ranks_may_be_repeated() -> None:
    facts = {"model.num_key_value_heads": 2, "model.mla": False}
    assert sharding.derive({**facts, **layout(attention_tp_size=8)})["launch.kv_heads_divisible"] is True
    assert sharding.derive({**facts, **layout(attention_tp_size=3)})["launch.kv_heads_divisible"] is False


def test_query_rows_are_heads_per_kv_head_times_draft_tokens() -> None:
    facts = {
        "model.num_attention_heads": 16,
        "model.num_key_value_heads": 2,
        "flag.speculative-num-draft-tokens": "6",
    }
    assert sharding.derive({**facts, **layout()})["launch.query_rows"] == 48


def test_a_package_version_is_the_installed_one_else_the_releases_own() -> None:
    assert pins.derive({"engine.version": "0.5.16"})["launch.flashinfer_version"] == "0.6.14"
    assert pins.derive({"engine.version": "0.5.12.post1"})["launch.flashinfer_version"] == "0.6.11.post1"
    measured = {"engine.version": "0.5.16", "package.flashinfer-python": "0.6.15"}
    assert pins.derive(measured)["launch.flashinfer_version"] == "0.6.15"


def test_free_memory_is_compared_over_the_gpus_of_the_launch_only() -> None:
    facts = {"host.gpu_free_gb": [79.0, 79.0, 40.0, 79.0], "flag.tp-size": "2"}
    assert derived.extend(facts)["host.gpu_free_uneven"] is False
    assert derived.extend({**facts, "flag.base-gpu-id": "1"})["host.gpu_free_uneven"] is True


def test_too_large_a_model_is_a_fact_and_a_doubtful_one_is_silent() -> None:
    facts = {"host.vram_gb": 80, "flag.tp-size": "1"}
    assert derived.extend({**facts, "model.weights_gb": 689})["launch.weights_fit"] is False
    assert "launch.weights_fit" not in derived.extend({**facts, "model.weights_gb": 80})
