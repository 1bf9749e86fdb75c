"""What a model folder contains: whole and damaged shards, draft layers, chat templates and the types of experts."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from launcher.hostside.read_checkpoint import checkpoint
from launcher.plan.launch_facts import model_facts

TENSORS = {
    "__metadata__": {"format": "pt"},
    "model.norm.weight": {"dtype": "BF16", "shape": [8], "data_offsets": [0, 16]},
    "model.embed_tokens.weight": {"dtype": "BF16", "shape": [4, 2], "data_offsets": [0, 16]},
    "mtp.layers.0.weight": {"dtype": "BF16", "shape": [8], "data_offsets": [16, 32]},
}


def shard(folder: Path, name: str = "model.safetensors", data: bytes = bytes(32)) -> Path:
    header = json.dumps(TENSORS).encode()
    path = folder / name
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


def only_shard(folder: Path) -> dict[str, Any]:
    [facts] = checkpoint(str(folder))["weight_files"]
    return dict(facts)


def test_a_whole_shard_is_as_long_as_its_header_says(tmp_path: Path) -> None:
    path = shard(tmp_path)
    assert only_shard(tmp_path)["expected_bytes"] == path.stat().st_size


def test_a_shard_that_was_cut_short_is_shorter_than_its_header_says(tmp_path: Path) -> None:
    path = shard(tmp_path, data=bytes(10))
    assert only_shard(tmp_path)["expected_bytes"] == path.stat().st_size + 22


def test_the_shape_of_the_embedding_is_read_from_its_header(tmp_path: Path) -> None:
    assert checkpoint(str(tmp_path))["embedding_shape"] is None
    shard(tmp_path)
    assert checkpoint(str(tmp_path))["embedding_shape"] == [4, 2]
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 8, "vocab_size": 4}))
    assert model_facts(checkpoint(str(tmp_path)))["embedding_shape"] == [4, 2]


def test_a_pointer_of_git_lfs_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    assert only_shard(tmp_path)["pointer"] is True


def test_a_shard_that_only_the_index_names_is_missing(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "b.safetensors"}}))
    assert only_shard(tmp_path) == {"name": "b.safetensors", "missing": True}


def test_a_prediction_head_and_its_type_are_found(tmp_path: Path) -> None:
    shard(tmp_path)
    facts = checkpoint(str(tmp_path))
    assert (facts["has_mtp_weights"], facts["mtp_dtypes"], facts["has_kv_scales"]) == (True, ["BF16"], False)


@pytest.mark.parametrize(("path", "hub"), [("meta-llama/Llama-3.1-8B", True), ("/nowhere/model", False)])
def test_a_path_that_is_not_a_folder_may_be_a_name_on_a_hub(path: str, hub: bool) -> None:
    facts = checkpoint(path)
    assert (facts["path_exists"], facts["hub_id"]) == (False, hub)


def typed_shard(path: Path, tensors: dict[str, str]) -> None:
    table = {name: {"dtype": kind, "shape": [1], "data_offsets": [0, 8]} for name, kind in tensors.items()}
    head = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + bytes(8))


def think(folder: Path) -> object:
    return checkpoint(str(folder))["chat_template_has_think"]


@pytest.mark.parametrize(
    ("text", "expected"), [("{{ '<think>\\n' }}", True), ("x.split('</think>')", True), ("{{ x }}", False)]
)
def test_a_template_in_a_file_of_its_own_is_read(tmp_path: Path, text: str, expected: bool) -> None:
    (tmp_path / "chat_template.jinja").write_text(text)
    assert think(tmp_path) is expected


@pytest.mark.parametrize(
    "template", ["<think>", [{"name": "default", "template": "<think>"}, {"name": "tool", "template": ""}]]
)
def test_a_template_in_the_tokenizers_settings_is_read(tmp_path: Path, template: object) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    assert think(tmp_path) is True


@pytest.mark.parametrize("settings", ["{}", "[]", "{", '{"chat_template": null}'])
def test_without_a_template_nothing_is_known(tmp_path: Path, settings: str) -> None:
    (tmp_path / "tokenizer_config.json").write_text(settings)
    assert think(tmp_path) is None
    assert "chat_template_has_think" not in model_facts(checkpoint(str(tmp_path)))


def test_experts_are_named_by_the_narrowest_type_and_draft_layers_apart(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"quantization_config": {"quant_algo": "NVFP4"}}))
    typed_shard(tmp_path / "model.safetensors", {
        "model.layers.3.mlp.experts.0.up_proj.weight": "U8",
        "model.layers.3.mlp.experts.0.up_proj.weight_scale": "F8_E4M3",
        "model.layers.3.mlp.shared_experts.up_proj.weight": "BF16",
        "mtp.layers.0.mlp.experts.0.up_proj.weight": "F8_E4M3",
        "mtp.layers.0.norm.weight": "BF16",
    })  # fmt: skip
    facts = model_facts(checkpoint(str(tmp_path)))
    assert (facts["routed_experts"], facts["shared_experts"], facts["mtp_dtype"]) == ("nvfp4", "bfloat16", "fp8")


def test_a_dense_model_has_no_experts(tmp_path: Path) -> None:
    typed_shard(tmp_path / "model.safetensors", {"model.layers.0.mlp.up_proj.weight": "BF16"})
    assert not {"routed_experts", "shared_experts", "mtp_dtype"} & set(model_facts(checkpoint(str(tmp_path))))
