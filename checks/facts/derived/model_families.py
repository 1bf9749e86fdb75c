"""Derive facts about the model's family: recurrent state, latent attention, the family names that parsers need.

Read from the architecture and, for parsers, from the model's name; a fact that the caller stated is never replaced.
`model_config` derives sizes and quantisation; the knowledge entries describe what the engine does with a family.
"""

from __future__ import annotations

import re
from typing import Any

from checks.catalog.conditions import Facts

GDN = frozenset({
    "Qwen3NextForCausalLM", "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration",
    "Qwen3_5ForCausalLM", "Qwen3_5MoeForCausalLM", "Qwen4ExpForConditionalGeneration",
    "InternS2PreviewForConditionalGeneration", "InternS2MobiusForConditionalGeneration",
    "MiniCPMV4_6ForConditionalGeneration", "MiniCPMV4_7ForConditionalGeneration",
    "JetNemotronForCausalLM", "JetVLMForConditionalGeneration",
})  # fmt: skip
"""Full attention mixed with gated delta networks: `hybrid_gdn_config` in 0.5.23:srt/configs/hybrid_arch.py."""

OTHER_RECURRENT = {
    "KimiLinearForCausalLM": "kda",
    "KimiK3ForConditionalGeneration": "kda",
    "KimiK3LinearForCausalLM": "kda",
    "Glm5NextForConditionalGeneration": "kda",
    "BailingMoeV2_5ForCausalLM": "lightning",
    "BailingMoeV3ForCausalLM": "lightning",
    "BailingMoeV3VLForConditionalGeneration": "lightning",
    "NemotronHForCausalLM": "mamba2",
    "NemotronHPuzzleForCausalLM": "mamba2",
    "NemotronH_Omni_Reasoning_V3": "mamba2",
    "NemotronH_Nano_VL_V2": "mamba2",
    "NemotronH_Nano_Omni_Reasoning_V3": "mamba2",
    "FalconH1ForCausalLM": "mamba2",
    "GraniteMoeHybridForCausalLM": "mamba2",
    "Mamba2ForCausalLM": "mamba2",
    "Lfm2ForCausalLM": "short-conv",
    "Lfm2MoeForCausalLM": "short-conv",
    "Lfm2VlForConditionalGeneration": "short-conv",
    "ZayaForCausalLM": "short-conv",
    "InklingForConditionalGeneration": "short-conv",
}
"""Other models with recurrent state: `_MAMBA_RADIX_CACHE_ARCHS` in 0.5.23:srt/arg_groups/overrides.py:369."""

_OTHER = frozenset(OTHER_RECURRENT)

MLA = frozenset({
    "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "DeepseekV4ForCausalLM",
    "Glm4MoeLiteForCausalLM", "GlmMoeDsaForCausalLM", "Glm5NextForConditionalGeneration", "LongcatFlashForCausalLM",
    "HYV4ForCausalLM", "DotsVLMForCausalLM", "Dots3NoteForCausalLM", "MistralLarge3ForCausalLM",
    "KimiK25ForConditionalGeneration", "KimiVLForConditionalGeneration", "KimiLinearForCausalLM",
    "KimiK3ForConditionalGeneration", "MiniCPM3ForCausalLM", "BailingMoeV2_5ForCausalLM", "SarvamMLAForCausalLM",
    "GigaChat35ForCausalLM", "Eagle3DeepseekV2ForCausalLM", "DeepseekV3ForCausalLMNextN",
})  # fmt: skip
"""`AttentionArch.MLA` in 0.5.23:srt/configs/model_config.py:1370."""

DSA = frozenset({"DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM"})

# Parser families by name, the most specific first; tool call and reasoning syntax depend on the family, not the size.
_FAMILIES = (
    ("deepseek-v4", r"deepseek[-_]?v4"),
    ("deepseek-v3.2", r"deepseek[-_]?v3[._]2"),
    ("deepseek-v3.1", r"deepseek[-_]?v3[._]1"),
    ("deepseek-v3", r"deepseek[-_]?v3"),
    ("deepseek-r1", r"deepseek[-_]?r1"),
    ("qwen3-coder", r"qwen-?3[-_.]?(next[-_.]?)?coder"),
    ("qwen3.5", r"qwen-?3[._](5|6|7|8|9)"),
    ("qwen3-next", r"qwen-?3[-_.]?next"),
    ("qwen3", r"qwen-?3(?!\d)|qwq"),
    ("qwen2.5", r"qwen-?(2|1\.5)"),
    ("glm-4.7", r"glm[-_]?(4[._]7|5)"),
    ("glm-4.5", r"glm[-_]?4[._][56]"),
    ("kimi-k3", r"kimi[-_]?k3"),
    ("kimi-linear", r"kimi[-_]?linear"),
    ("kimi-k2", r"kimi[-_]?k2"),
    ("inkling", r"inkling"),
    ("gpt-oss", r"gpt[-_]?oss"),
    ("llama-4", r"llama[-_]?4"),
    ("llama-3", r"llama[-_]?3"),
    ("minimax-m2", r"minimax[-_]?m2"),
    ("step3", r"step[-_]?3"),
    ("mimo", r"mimo"),
    ("gemma-4", r"gemma[-_]?4"),
    ("nemotron-3", r"nemotron[-_]?(3|h)\b"),
    ("mistral", r"mi[sx]tral|magistral|devstral|ministral"),
)
# Families in which every model is a hybrid, whatever its size.
_RECURRENT_FAMILIES = {
    "qwen3.5": "gdn",
    "qwen3-next": "gdn",
    "kimi-linear": "kda",
    "kimi-k3": "kda",
    "nemotron-3": "mamba2",
    "inkling": "short-conv",
}
_BY_ARCHITECTURE = {
    "Qwen3_5ForConditionalGeneration": "qwen3.5",
    "Qwen3_5MoeForConditionalGeneration": "qwen3.5",
    "GptOssForCausalLM": "gpt-oss",
    "Llama4ForConditionalGeneration": "llama-4",
    "DeepseekV32ForCausalLM": "deepseek-v3.2",
    "DeepseekV4ForCausalLM": "deepseek-v4",
    "Qwen2ForCausalLM": "qwen2.5",
}


def derive(facts: Facts) -> dict[str, Any]:
    """Return `model.` hybrid gdn recurrent mla dsa family, and `draft.mla` where the draft's architecture is known."""
    found = _model(facts)
    if draft := _names(facts.get("draft.architectures")):
        found["draft.mla"] = bool(draft & MLA)
    return {name: value for name, value in found.items() if facts.get(name) is None}


def _names(architectures: Any) -> frozenset[str]:
    return frozenset(architectures if isinstance(architectures, list | tuple) else filter(None, (architectures,)))


def _model(facts: Facts) -> dict[str, Any]:
    found: dict[str, Any] = {}
    names = _names(facts.get("model.architectures"))
    if names:
        recurrent = "gdn" if names & GDN else next((OTHER_RECURRENT[name] for name in sorted(names & _OTHER)), "")
        found = {
            "model.recurrent": recurrent or None,
            "model.gdn": recurrent == "gdn",
            "model.hybrid": bool(recurrent),
            "model.mla": bool(names & MLA),
            "model.dsa": bool(names & DSA) or facts.get("model.index_topk") is not None,
        }
    elif facts.get("model.hybrid") is False:
        found = {"model.gdn": False, "model.recurrent": None}
    family = _family(facts)
    if family:
        found["model.family"] = family
    if not names and family in _RECURRENT_FAMILIES:
        kind = _RECURRENT_FAMILIES[family]
        found.update({"model.recurrent": kind, "model.gdn": kind == "gdn", "model.hybrid": True})
    return found


def _family(facts: Facts) -> str:
    names = [str(facts.get("model.name") or "")]
    # The last part of a path is usually the model's name; aliases such as `/model` match no family.
    names += [str(facts.get(key) or "").rstrip("/").rpartition("/")[2] for key in _NAME_FLAGS]
    for name in filter(None, names):
        for family, pattern in _FAMILIES:
            if re.search(pattern, name, re.IGNORECASE):
                return family
    architectures = facts.get("model.architectures") or ()
    return next((_BY_ARCHITECTURE[name] for name in architectures if name in _BY_ARCHITECTURE), "")


_NAME_FLAGS = ("flag.model-path", "flag.served-model-name")
