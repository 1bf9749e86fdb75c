"""Recorded answers of hosts → what rules see."""

from typing import Any

import pytest

from launcher.plan.launch_facts import gpu_facts, host_facts, model_facts, peer_access, to_launch

PCIE = "\tGPU0\tGPU1\n GPU0\tX\tCNS\n GPU1\tCNS\tX\nLegend:\n  OK  = Status Ok\n"
LINKED = "\tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\nLegend:\n  CNS = Chipset not supported\n"


def gpu(**changes: str) -> dict[str, str]:
    base = {
        "name": "NVIDIA RTX PRO 6000 Blackwell",
        "compute_cap": "12.0",
        "memory.total": "97887",
        "memory.free": "97000",
    }
    return {**base, "driver_version": "580.1", **changes}


@pytest.mark.parametrize(("matrix", "expected"), [(PCIE, False), (LINKED, True), ("", None), (None, None)])
def test_peer_access_is_what_the_matrix_says(matrix: str | None, expected: bool | None) -> None:
    assert peer_access(matrix) is expected


SEEN: dict[str, Any] = {
    "path": "/m", "path_exists": True, "config": {}, "files": [], "weight_files": [], "weight_bytes": 0,
    "has_tokenizer": True, "has_chat_template": True,
}  # fmt: skip


def test_gpus_become_one_kind_with_its_sm_version() -> None:
    raw = {"gpus": [gpu(), gpu()], "topology": "GPU0 X PHB\nGPU1 PHB X"}
    found = gpu_facts(raw, {})
    assert found == {
        "name": "RTX PRO 6000 Blackwell", "count": 2, "platform": "cuda", "vram_gb": 96, "sm": 120, "nvlink": False,
    }  # fmt: skip


def test_no_gpu_is_cpu_only_when_the_launch_says_so() -> None:
    assert gpu_facts({"gpus": None}, {}) == {}
    assert gpu_facts({"gpus": None}, {"device": "cpu"})["platform"] == "cpu"


def test_a_tool_that_was_looked_for_and_is_absent_is_null_and_not_missing() -> None:
    found = host_facts(
        {"toolchain": {"nvcc": None, "ninja": "/usr/bin/ninja"}, "gpus": [gpu(**{"memory.free": "4096"})]}
    )
    assert found["nvcc"] is None
    assert found["ninja"] == "/usr/bin/ninja"
    assert "gcc" not in found
    assert found["gpu_free_gb"] == [4.0]


def test_a_checkpoint_tells_its_configuration_and_its_shards() -> None:
    seen: dict[str, Any] = {
        "path": "/m", "path_exists": True, "quant_config": {"quantization": {"quant_algo": "NVFP4"}}, "files": ["a"],
        "config": {"architectures": ["X"], "text_config": {"num_attention_heads": 32}, "vocab_size": 7},
        "weight_files": [{"name": "a.safetensors", "bytes": 1}], "weight_bytes": 2 * 10**9, "has_tokenizer": True,
        "has_chat_template": False, "has_mtp_weights": True, "has_kv_scales": None, "mtp_dtypes": ["BF16"],
    }  # fmt: skip
    found = model_facts(seen)
    assert found["architectures"] == ["X"]
    assert found["num_attention_heads"] == 32
    assert found["quantization"] == {"quant_method": "modelopt", "quant_algo": "NVFP4"}
    assert found["weights_gb"] == 2.0
    assert found["mtp_dtype"] == "bfloat16"
    assert "has_kv_scales" not in found


def test_only_what_rules_read_of_a_configuration_becomes_a_fact() -> None:
    config = {"vocab_size": 7, "torch_dtype": "bfloat16", "id2label": {"0": "x"}, "pad_token_id": 3,
              "rope_scaling": {"rope_type": "yarn", "factor": 4.0}, "vision_config": {"num_heads": 16}}  # fmt: skip
    found = model_facts({**SEEN, "config": config})
    assert found["torch_dtype"] == "bfloat16"
    assert found["rope_scaling"] == {"rope_type": "yarn", "factor": 4.0}
    assert found["vision_num_heads"] == 16
    assert not {"pad_token_id", "id2label", "vision_config"} & set(found)


@pytest.mark.parametrize(
    ("dtypes", "quantization", "stored"),
    [
        (["BF16"], None, "bfloat16"),
        (["BF16", "F8_E4M3"], {"quant_method": "fp8"}, "fp8"),
        (["BF16", "U8"], {"quant_algo": "NVFP4"}, "nvfp4"),
        (["U8"], {"quant_method": "mxfp4"}, "mxfp4"),
        (["I8"], {"quant_method": "w8a8_int8"}, "int8"),
        (["F16", "I32"], {"quant_method": "awq"}, "packed"),
    ],
)
def test_experts_are_named_after_their_narrowest_type(
    dtypes: list[str], quantization: dict[str, str] | None, stored: str
) -> None:
    found = model_facts({**SEEN, "config": {"quantization_config": quantization}, "expert_dtypes": dtypes})
    assert found["routed_experts"] == stored


def test_the_kernel_cache_counts_only_for_a_launch_that_uses_it() -> None:
    raw = {"triton_cache": {"dir": "/home/me/.triton/cache", "writable": False, "filesystem": "nfs4"}}
    assert to_launch(raw, {}, {}).host["triton_cache_writable"] is False
    assert to_launch(raw, {}, {"TRITON_CACHE_DIR": "/home/me/.triton/cache"}).host["triton_cache_filesystem"] == "nfs4"
    assert "triton_cache_writable" not in to_launch(raw, {}, {"TRITON_CACHE_DIR": "/tmp/c"}).host


def test_what_the_hub_said_is_a_fact_and_its_silence_is_none() -> None:
    launch = to_launch({"hub": {"reachable": True, "gated": True}}, {}, {})
    assert (launch.host["hub_reachable"], launch.model["gated"]) == (True, True)
    silent = to_launch({"hub": {"reachable": None, "gated": None}}, {}, {})
    assert "hub_reachable" not in silent.host and "gated" not in silent.model


def test_of_a_draft_only_what_is_compared_with_the_target_is_kept() -> None:
    launch = to_launch({"draft_model": {**SEEN, "config": {"hidden_size": 64, "num_attention_heads": 4}}}, {}, {})
    assert launch.draft_model["hidden_size"] == 64
    assert "num_attention_heads" not in launch.draft_model and "files" not in launch.draft_model


def test_a_path_that_is_no_folder_may_be_a_hub_id_or_a_mistake() -> None:
    assert model_facts({"path": "Qwen/Qwen3-8B", "path_exists": False, "hub_id": True})["path_exists"] is None
    assert model_facts({"path": "/no/such", "path_exists": False, "hub_id": False})["path_exists"] is False


def test_packages_a_rule_asks_for_become_known_absent_and_torch_gets_its_cuda() -> None:
    raw = {"engine": {"packages": {"sglang": "0.5.10", "torch": "2.9.1"}, "torch": "2.9.1", "torch_cuda": "12.8"}}
    launch = to_launch(raw, {}, {"SGLANG_LAUNCHER_RUN": "x", "A": "1"}, ["ninja", "torch"])
    present = {name: version for name, version in launch.packages.items() if version}
    assert present == {"torch": "2.9.1+cu128", "sglang": "0.5.10"}
    assert {"ninja", "xgrammar", "transformers"} <= set(launch.packages)  # asked for; required by the release
    assert launch.env == {"A": "1"}
    assert launch.engine == "0.5.10"
