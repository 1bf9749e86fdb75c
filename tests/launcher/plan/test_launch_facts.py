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
