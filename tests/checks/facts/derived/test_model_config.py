"""The kind of a model, its weight format and its experts, read from the configuration or, failing that, its name."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.derived.model_config import derive


def of(**facts: Any) -> dict[str, Any]:
    """Derived facts; keyword `x` stands for `model.x`, `quant__x` for `model.quant.x`, `flag__x` for `flag.x`."""
    named = {}
    for name, value in facts.items():
        space, _, rest = name.partition("__")
        named[f"flag.{rest}" if space == "flag" else f"model.{name.replace('__', '.')}"] = value
    return {name.removeprefix("model."): value for name, value in derive(named).items()}


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"architectures": ["DeepseekV3ForCausalLM"]}, "deepseek-v3"),
        ({"architectures": ["DeepseekV32ForCausalLM"]}, "deepseek-v32"),
        ({"architectures": ["Qwen3MoeForCausalLM"]}, "qwen3-moe"),
        ({"architectures": ["OwnForCausalLM"]}, "other"),
        ({"architectures": ["LlamaForCausalLM"], "name": "DeepSeek-R1-Distill-Llama-70B"}, "llama"),
        ({"name": "deepseek-ai/DeepSeek-R1"}, "deepseek-v3"),
        ({"name": "Qwen/Qwen3-30B-A3B"}, "qwen3-moe"),
        ({"flag__model-path": "openai/gpt-oss-20b"}, "gpt-oss"),
        ({"name": "own/model"}, None),
        ({}, None),
    ],
)
def test_the_architecture_goes_before_the_name(facts: dict[str, Any], kind: str | None) -> None:
    assert of(**facts).get("kind") == kind


@pytest.mark.parametrize(
    ("name", "dsa", "mla", "moe"),
    [
        ("deepseek-ai/DeepSeek-V3.2", True, True, True),
        ("moonshotai/Kimi-K2", False, True, True),
        ("openai/gpt-oss-20b", False, False, True),
        ("meta-llama/Llama-3.1-8B", False, False, False),
        ("nvidia/Nemotron-H-8B", False, False, None),
    ],
)
def test_a_kind_tells_attention_and_experts(name: str, dsa: bool, mla: bool, moe: bool | None) -> None:
    found = of(name=name)
    assert (found["dsa"], found["mla"], found.get("moe")) == (dsa, mla, moe)
    assert found["moe_possible"] is (moe is not False)


@pytest.mark.parametrize(
    ("facts", "moe"),
    [
        ({"num_experts": 128}, True),
        ({"n_routed_experts": 256}, True),
        ({"num_local_experts": 8}, True),
        ({"num_experts": 1, "name": "Llama-3"}, False),
        ({"architectures": ["OwnMoeForCausalLM"]}, True),
        ({"architectures": ["OwnForCausalLM"]}, None),
    ],
)
def test_experts_are_counted_or_named(facts: dict[str, Any], moe: bool | None) -> None:
    assert of(**facts).get("moe") is moe


def test_what_is_known_is_not_replaced_by_the_kind() -> None:
    found = of(name="DeepSeek-V3.2", mla=False, dsa=False, moe=False)
    assert not {"mla", "dsa", "moe"} & found.keys()
    assert found["moe_possible"] is False


# --- weight formats


@pytest.mark.parametrize(
    ("method", "quant", "nvfp4", "fp8", "bits"),
    [
        ("modelopt", {"quant_algo": "NVFP4"}, True, False, 4),
        ("modelopt", {"quant_algo": "FP8"}, False, True, 8),
        ("compressed-tensors", {"format": "nvfp4-pack-quantized"}, True, False, 4),
        ("compressed-tensors", {"format": "float-quantized"}, False, True, 8),
        ("compressed-tensors", {"format": "pack-quantized"}, False, False, 4),
        ("compressed-tensors", {"format": "int-quantized"}, False, False, None),
        ("fp8", {"weight_block_size": [128, 128]}, False, True, 8),
        ("awq", {"bits": 4}, False, False, 4),
        ("gptq", {"bits": "8"}, False, False, 8),
        ("awq", {}, False, False, 4),
        ("w4afp8", {}, False, False, 4),
        ("mxfp4", {}, False, False, 4),
    ],
)
def test_weight_format_comes_from_the_configuration(
    method: str, quant: dict[str, Any], nvfp4: bool, fp8: bool, bits: int | None
) -> None:
    found = of(quantized=True, quant_method=method, **{f"quant__{name}": value for name, value in quant.items()})
    assert (found["nvfp4"], found["fp8"], found.get("weight_bits")) == (nvfp4, fp8, bits)


def test_a_block_of_fp8_has_a_width_and_other_formats_have_none() -> None:
    block = {"quantized": True, "quant__weight_block_size": [128, 64]}
    fp8, awq = of(quant_method="fp8", **block), of(quant_method="awq", **block)
    assert (fp8["fp8_block"], fp8["block_n"]) == (True, 128)
    assert awq["fp8_block"] is False and "block_n" not in awq
    assert of(quantized=True, quant_method="fp8")["fp8_block"] is False


@pytest.mark.parametrize(
    ("facts", "ue8m0"), [({"scale_fmt": "ue8m0"}, True), ({"quant__scale_fmt": "UE8M0"}, True), ({}, False)]
)
def test_the_format_of_scales_is_noticed(facts: dict[str, Any], ue8m0: bool) -> None:
    assert of(quantized=True, quant_method="fp8", **facts)["scales_ue8m0"] is ue8m0


@pytest.mark.parametrize(("flag", "bits"), [(None, 16), ("fp8", 8), ("mxfp4", 4), ("bitsandbytes", 4), ("awq", 16)])
def test_plain_weights_may_be_quantised_while_loading(flag: str | None, bits: int) -> None:
    found = of(quantized=False, flag__quantization=flag)
    assert (found["weight_bits"], found["nvfp4"], found["fp8"], found["kv_scales_stated"]) == (
        bits,
        False,
        False,
        False,
    )


@pytest.mark.parametrize(
    ("facts", "nvfp4", "fp8", "bits"),
    [
        ({"name": "nvidia/GLM-5-NVFP4"}, True, False, 4),
        ({"name": "x/y-fp4"}, True, False, 4),
        ({"name": "x/y", "flag__quantization": "modelopt_fp4"}, True, False, 4),
        ({"name": "Qwen/Qwen3-8B-FP8"}, False, True, 8),
        ({"name": "Qwen/Qwen3-8B"}, None, None, None),
        ({"name": "nvidia/GLM-5-NVFP4", "quantized": False}, False, False, 16),
    ],
)
def test_a_name_speaks_only_where_no_configuration_is_known(
    facts: dict[str, Any], nvfp4: bool | None, fp8: bool | None, bits: int | None
) -> None:
    found = of(**facts)
    assert (found.get("nvfp4"), found.get("fp8"), found.get("weight_bits")) == (nvfp4, fp8, bits)


# --- parts that are not quantised


@pytest.mark.parametrize(
    ("facts", "unquantised", "listed"),
    [
        ({"mtp_dtype": "bfloat16"}, True, False),
        ({"mtp_dtype": "torch.float16"}, True, False),
        ({"mtp_dtype": "fp8"}, False, False),
        ({"quant__ignore": ["model.layers.61.mlp"]}, True, True),
        ({"quant__modules_to_not_convert": ["eh_proj"], "mtp_dtype": "fp8"}, False, True),
        ({"quant__exclude_modules": ["lm_head"]}, None, False),
        ({}, None, False),
    ],
)
def test_a_draft_layer_may_be_left_in_full_precision(
    facts: dict[str, Any], unquantised: bool | None, listed: bool
) -> None:
    found = of(quantized=True, quant_method="fp8", **facts)
    assert (found.get("mtp_unquantized"), found["mtp_in_skip_list"]) == (unquantised, listed)
    assert found["has_skip_list"] is any(name.startswith("quant__") for name in facts)


@pytest.mark.parametrize(
    ("facts", "plain"),
    [
        ({"shared_experts": "bf16"}, True),
        ({"quant__ignored_layers": ["mlp.shared_experts"]}, True),
        ({"shared_experts": "fp8"}, None),
    ],
)
def test_shared_experts_may_be_left_in_full_precision(facts: dict[str, Any], plain: bool | None) -> None:
    assert of(quantized=True, quant_method="fp8", **facts).get("shared_experts_unquantized") is plain


@pytest.mark.parametrize("key", ["kv_cache_quant_algo", "kv_cache_scheme", "kv_cache_dtype"])
def test_scales_of_the_cache_are_stated_in_one_of_three_places(key: str) -> None:
    assert of(quantized=True, **{f"quant__{key}": "FP8"})["kv_scales_stated"] is True
    assert of(quantized=True)["kv_scales_stated"] is False
    assert "kv_scales_stated" not in of()


# --- the flag against the checkpoint


@pytest.mark.parametrize(
    ("asked", "method", "conflict"),
    [
        ("fp8", "fp8", False),
        ("modelopt_fp4", "modelopt", False),
        ("awq_marlin", "awq", False),
        ("awq", "AWQ", False),
        ("awq", "gptq", True),
        ("fp8", "compressed-tensors", True),
        ("bitsandbytes", "awq", True),
        ("gguf", "awq", True),
        ("unquant", "awq", False),
        ("awq", None, False),
    ],
)
def test_the_option_is_compared_with_the_checkpoint(asked: str, method: str | None, conflict: bool) -> None:
    assert of(flag__quantization=asked, quantized=True, quant_method=method)["quant_conflict"] is conflict


@pytest.mark.parametrize(
    ("asked", "unfounded"), [("modelopt_fp4", True), ("awq", True), ("fp8", False), ("bitsandbytes", False)]
)
def test_prepared_formats_on_a_plain_checkpoint_are_unfounded(asked: str, unfounded: bool) -> None:
    assert of(flag__quantization=asked, quantized=False)["quant_flag_unfounded"] is unfounded
    assert not {"quant_flag_unfounded", "quant_conflict"} & of(flag__quantization=asked).keys()
