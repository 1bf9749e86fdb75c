"""The family of a model: recurrent state, latent attention, and the name that parsers go by."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.derived.model_families import DSA, GDN, MLA, OTHER_RECURRENT, derive
from checks.facts.derived.tables import first_releases


@pytest.mark.parametrize(
    ("architecture", "recurrent", "latent", "sparse"),
    [
        ("Qwen3NextForCausalLM", "gdn", False, False),
        ("NemotronHForCausalLM", "mamba2", False, False),
        ("KimiLinearForCausalLM", "kda", True, False),
        ("Lfm2ForCausalLM", "short-conv", False, False),
        ("LlamaForCausalLM", None, False, False),
        ("DeepseekV3ForCausalLM", None, True, False),
        ("DeepseekV32ForCausalLM", None, True, True),
    ],
)
def test_an_architecture_tells_state_and_attention(
    architecture: str, recurrent: str | None, latent: bool, sparse: bool
) -> None:
    for given in ([architecture], (architecture,), architecture):
        found = derive({"model.architectures": given})
        assert found.get("model.recurrent") == recurrent
        assert found["model.gdn"] is (recurrent == "gdn") and found["model.hybrid"] is (recurrent is not None)
        assert (found["model.mla"], found["model.dsa"]) == (latent, sparse)


def test_an_indexer_makes_attention_sparse() -> None:
    assert derive({"model.architectures": ["LlamaForCausalLM"], "model.index_topk": 2048})["model.dsa"] is True


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3-coder"),
        ("Qwen/Qwen3-Next-80B-A3B", "qwen3-next"),
        ("Qwen/Qwen3.6-35B-A3B-FP8", "qwen3.5"),
        ("Qwen/Qwen3-30B-A3B", "qwen3"),
        ("Qwen/QwQ-32B", "qwen3"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5"),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek-v3.1"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-r1"),
        ("zai-org/GLM-4.6", "glm-4.5"),
        ("nvidia/GLM-5.2-NVFP4", "glm-4.7"),
        ("moonshotai/Kimi-K2-Thinking", "kimi-k2"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3"),
        ("openai/gpt-oss-120b", "gpt-oss"),
        ("mistralai/Mixtral-8x7B", "mistral"),
        ("own/model", None),
    ],
)
def test_the_most_specific_family_is_named(name: str, family: str | None) -> None:
    assert derive({"model.name": name}).get("model.family") == family
    assert derive({"draft.name": name}) == {}
    assert derive({"flag.model-path": f"/models/{name}/"}).get("model.family") == family


def test_a_folder_above_the_model_is_not_its_name() -> None:
    assert "model.family" not in derive({"flag.model-path": "/data/qwen3/model"})
    assert derive({"flag.model-path": "/model", "flag.served-model-name": "Qwen3-8B"})["model.family"] == "qwen3"


def test_an_architecture_names_the_family_where_no_name_does() -> None:
    facts = {"model.name": "/model", "model.architectures": ["GptOssForCausalLM"]}
    assert derive(facts)["model.family"] == "gpt-oss"
    assert derive({**facts, "model.name": "Qwen3-8B"})["model.family"] == "qwen3"


@pytest.mark.parametrize(
    ("facts", "hybrid", "recurrent"),
    [
        ({"model.name": "Qwen3-Next-80B"}, True, "gdn"),
        ({"model.name": "Kimi-K3"}, True, "kda"),
        ({"model.name": "Qwen3-8B"}, None, None),
        ({"model.name": "Qwen3-Next-80B", "model.architectures": ["LlamaForCausalLM"]}, False, None),
    ],
)
def test_a_name_tells_the_state_only_where_the_architecture_is_unknown(
    facts: dict[str, Any], hybrid: bool | None, recurrent: str | None
) -> None:
    found = derive(facts)
    assert (found.get("model.hybrid"), found.get("model.recurrent")) == (hybrid, recurrent)
    assert found.get("model.gdn") == (None if hybrid is None else recurrent == "gdn")


def test_what_the_caller_knows_of_a_model_is_not_replaced() -> None:
    known = {"model.architectures": ["Qwen3NextForCausalLM"], "model.hybrid": False, "model.family": "mine"}
    found = derive(known)
    assert "model.hybrid" not in found and "model.family" not in found
    assert derive({"model.hybrid": False})["model.gdn"] is False
    assert derive({}) == derive({"model.hybrid": True}) == derive({"draft.hybrid": False}) == {}


def test_every_architecture_of_the_tables_is_registered_by_some_release() -> None:
    known = {*first_releases(), "Eagle3DeepseekV2ForCausalLM", "NemotronH_Nano_VL_V2"}
    assert {*GDN, *OTHER_RECURRENT, *MLA, *DSA} - known == set()
