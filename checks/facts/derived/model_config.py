"""Derive facts about a model: its kind as kernels distinguish it, the quantisation of its weights, its experts.

Read from the configuration; from the name only where nothing else is known (a log contains little more than the name).
`model_families` derives the families that parsers distinguish, `sharding` the split over GPUs, `memory_estimate` the
size.
"""

from __future__ import annotations

import re
from typing import Any

from checks.catalog.conditions import Facts, as_number

# Kind → (architecture, name) patterns. Order matters: the first hit decides.
KINDS: tuple[tuple[str, str, str], ...] = (
    ("deepseek-v4", r"DeepseekV4", r"deepseek.?v4"),
    ("deepseek-v32", r"DeepseekV32", r"deepseek.?v3\.2"),
    ("glm-dsa", r"GlmMoeDsa|Glm5Next", r"glm-?5"),
    ("glm4-moe", r"Glm4Moe|Glm4vMoe", r"glm-?4\.[5-9]"),
    ("kimi", r"Kimi", r"kimi"),
    ("deepseek-v3", r"DeepseekV[23]|MistralLarge3|LongcatFlash", r"deepseek.?(v3|r1|v2)"),
    ("gpt-oss", r"GptOss", r"gpt.?oss"),
    ("llama4", r"Llama4", r"llama.?4"),
    ("minimax", r"MiniMax", r"minimax"),
    ("qwen4-exp", r"Qwen4", r"qwen3\.8|qwen4"),
    ("qwen3.5", r"Qwen3_5", r"qwen3\.[56]"),
    ("qwen3-next", r"Qwen3Next", r"qwen3-(coder-)?next"),
    ("qwen3-moe", r"Qwen3(VL|Omni)?Moe", r"qwen3.*-a\d+b"),
    ("gemma4", r"Gemma4", r"gemma.?4"),
    ("nemotron-h", r"NemotronH", r"nemotron"),
    ("mimo", r"MiMo", r"mimo"),
    ("llama", r"^Llama", r"llama"),
)

_DSA = ("deepseek-v32", "glm-dsa", "deepseek-v4")
_MLA = (*_DSA, "deepseek-v3", "kimi")
_MOE = (*_MLA, "glm4-moe", "gpt-oss", "llama4", "minimax", "qwen4-exp", "qwen3-next", "qwen3-moe", "mimo")
_FP4_NAME = re.compile(r"nvfp4|[-_]fp4", re.IGNORECASE)
_MTP_NAME = re.compile(r"mtp|nextn|eh_proj|layers\.(61|78|92)\b", re.IGNORECASE)  # draft layer behind the last one
_FULL_PRECISION = ("bfloat16", "bf16", "float16", "fp16")


def derive(facts: Facts) -> dict[str, Any]:
    """Return `model.kind nvfp4 fp8 fp8_block block_n ... moe moe_possible mtp_unquantized quant_conflict ...`."""
    derived: dict[str, Any] = {}
    kind = _kind(facts)
    if kind:
        derived["model.kind"] = kind
        _set_unknown(derived, facts, "model.dsa", kind in _DSA)
        _set_unknown(derived, facts, "model.mla", kind in _MLA)
        _set_unknown(derived, facts, "model.query_sparse_attention", kind == "qwen4-exp")
    if (moe := _moe(facts, kind)) is not None:
        _set_unknown(derived, facts, "model.moe", moe)
    derived["model.moe_possible"] = derived.get("model.moe", facts.get("model.moe")) is not False
    derived.update(_quantisation(facts))
    derived.update(_unquantised_parts(facts))
    derived.update(_flag_against_checkpoint(facts))
    return derived


def _set_unknown(derived: dict[str, Any], facts: Facts, name: str, value: object) -> None:
    if facts.get(name) is None:
        derived[name] = value


def _kind(facts: Facts) -> str | None:
    architectures = facts.get("model.architectures") or []
    for kind, pattern, _ in KINDS:
        if any(re.search(pattern, str(item)) for item in architectures):
            return kind
    if architectures:
        return "other"
    name = str(facts.get("model.name") or facts.get("flag.model-path") or "")
    found = (kind for kind, _, pattern in KINDS if re.search(pattern, name, re.IGNORECASE))
    return next(found, None) if name else None


def _moe(facts: Facts, kind: str | None) -> bool | None:
    experts = [as_number(facts.get(f"model.{key}")) for key in ("num_experts", "n_routed_experts", "num_local_experts")]
    if any(count is not None and count > 1 for count in experts):
        return True
    architectures = facts.get("model.architectures")
    if kind in _MOE or (architectures and any("Moe" in str(item) for item in architectures)):
        return True
    return False if kind == "llama" else None


def _quantisation(facts: Facts) -> dict[str, Any]:
    method = str(facts.get("model.quant_method") or "").lower()
    if not facts.get("model.quantized"):
        return _from_name(facts) if facts.get("model.quantized") is None else _plain(facts)
    block = facts.get("model.quant.weight_block_size")
    nvfp4 = _is_nvfp4(facts, method)
    fp8 = not nvfp4 and _is_fp8(facts, method)
    scale = facts.get("model.scale_fmt") or facts.get("model.quant.scale_fmt")
    derived: dict[str, Any] = {"model.scales_ue8m0": str(scale).lower() == "ue8m0"}
    derived.update({"model.nvfp4": nvfp4, "model.fp8": fp8, "model.fp8_block": bool(fp8 and block)})
    if fp8 and isinstance(block, list | tuple) and block:
        derived["model.block_n"] = block[0]
    bits = 4 if nvfp4 else 8 if fp8 else _bits(facts, method)
    if bits:
        derived["model.weight_bits"] = bits
    return derived


def _plain(facts: Facts) -> dict[str, Any]:
    online = {"fp8": 8, "w8a8_fp8": 8, "w8a8_int8": 8, "mxfp8": 8, "mxfp4": 4, "nvfp4_online": 4, "bitsandbytes": 4}
    bits = online.get(str(facts.get("flag.quantization") or ""), 16)
    return {"model.nvfp4": False, "model.fp8": False, "model.fp8_block": False, "model.weight_bits": bits}


def _from_name(facts: Facts) -> dict[str, Any]:
    name = str(facts.get("model.name") or facts.get("flag.model-path") or "")
    if _FP4_NAME.search(name) or facts.get("flag.quantization") == "modelopt_fp4":
        return {"model.nvfp4": True, "model.fp8": False, "model.fp8_block": False, "model.weight_bits": 4}
    if re.search(r"[-_(]fp8", name, re.IGNORECASE):
        return {"model.nvfp4": False, "model.fp8": True, "model.weight_bits": 8}
    return {}


def _is_nvfp4(facts: Facts, method: str) -> bool:
    stated = f"{facts.get('model.quant.quant_algo') or ''} {facts.get('model.quant.format') or ''} {method}"
    return bool(re.search(r"nvfp4|\bfp4|modelopt_fp4", stated, re.IGNORECASE))


def _is_fp8(facts: Facts, method: str) -> bool:
    stated = f"{facts.get('model.quant.quant_algo') or ''} {facts.get('model.quant.format') or ''} {method}"
    return bool(re.search(r"fp8|float-quantized", stated, re.IGNORECASE)) and "w4a" not in method


def _bits(facts: Facts, method: str) -> int | None:
    bits = as_number(facts.get("model.quant.bits") or facts.get("model.quant.num_bits"))
    if bits:
        return int(bits)
    four = ("awq", "gptq", "mxfp4", "w4afp8", "moe_wna16", "auto-round", "quark")
    return 4 if method in four or "pack-quantized" in str(facts.get("model.quant.format") or "") else None


def _unquantised_parts(facts: Facts) -> dict[str, Any]:
    if not facts.get("model.quantized"):
        return {} if facts.get("model.quantized") is None else {"model.kv_scales_stated": False}
    skipped = [str(item) for key in ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers")
               for item in facts.get(f"model.quant.{key}") or []]  # fmt: skip
    stated = ("kv_cache_quant_algo", "kv_cache_scheme", "kv_cache_dtype")
    derived: dict[str, Any] = {"model.kv_scales_stated": any(facts.get(f"model.quant.{key}") for key in stated)}
    dtype = str(facts.get("model.mtp_dtype") or "").removeprefix("torch.")
    if dtype or any(_MTP_NAME.search(item) for item in skipped):
        derived["model.mtp_unquantized"] = dtype in _FULL_PRECISION or not dtype
    if facts.get("model.shared_experts") in _FULL_PRECISION or any("shared_expert" in item for item in skipped):
        derived["model.shared_experts_unquantized"] = True
    derived["model.has_skip_list"] = bool(skipped)
    derived["model.mtp_in_skip_list"] = any(_MTP_NAME.search(item) for item in skipped)
    return derived


# Checkpoint methods that a `--quantization` value accepts in addition to its own: `compatible_quantization_methods` and
# `override_quantization_method` in 0.5.10:srt/configs/model_config.py:958 and 0.5.23:srt/configs/model_config.py:2042.
_TAKES = {
    "modelopt_fp8": ("modelopt",),
    "modelopt_fp4": ("modelopt", "fp8"),
    "modelopt_mixed": ("modelopt",),
    "nvfp4_online": ("fp8", "modelopt_fp8", "modelopt"),
    "minimax_m3_nvfp4": ("mxfp8",),
    "petit_nvfp4": ("modelopt",),
    "w8a8_int8": ("compressed-tensors", "compressed_tensors"),
    "w8a8_fp8": ("compressed-tensors", "compressed_tensors"),
    "auto-round-int8": ("compressed-tensors", "compressed_tensors"),
    "awq_marlin": ("awq",),
    "gptq_marlin": ("gptq",),
    "marlin": ("gptq", "awq"),
    "moe_wna16": ("gptq", "awq", "gptq_marlin", "awq_marlin"),
    "modelopt": ("modelopt_fp4", "modelopt_fp8"),
    "compressed-tensors": ("compressed_tensors",),
    "auto-round": ("auto_round", "gptq", "awq"),
    "humming": ("fp8", "gptq", "awq", "compressed-tensors", "mxfp4", "modelopt"),
    "mxfp_w4a8": ("mxfp4",),
    "quark_mxfp4": ("quark", "mxfp4", "fp8"),
    "w4afp8": ("fp8", "modelopt"),
    "gguf": (),
    "unquant": (),
}
# Methods that need weights prepared for them; the others (fp8, bitsandbytes, ...) also quantise while loading.
_PREPARED_ONLY = (
    "awq", "awq_marlin", "gptq", "gptq_marlin", "marlin", "moe_wna16", "modelopt", "modelopt_fp4", "modelopt_fp8",
    "modelopt_mixed", "compressed-tensors", "petit_nvfp4", "w4afp8", "qoq", "auto-round", "quark",
)  # fmt: skip


def _flag_against_checkpoint(facts: Facts) -> dict[str, Any]:
    asked, method = str(facts.get("flag.quantization") or "").lower(), facts.get("model.quant_method")
    if not asked or facts.get("model.quantized") is None:
        return {}
    if not facts.get("model.quantized"):
        return {"model.quant_flag_unfounded": asked in _PREPARED_ONLY}
    stated = str(method or "").lower()
    same = asked == stated or stated in _TAKES.get(asked, ())
    return {"model.quant_conflict": bool(stated) and not same and asked != "unquant"}
