"""A model folder as it was looked at: what is there, what is missing or cut short, whether the release knows it."""

from __future__ import annotations

import pytest

from checks.facts.derived.checkpoint_files import derive


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("/models/x", True),
        ("./x", True),
        ("../x", True),
        ("~/x", True),
        ("a/b/c", True),
        ("Qwen/Qwen3-8B", False),
        ("gpt2", False),
    ],
)
def test_a_path_is_told_from_a_name_of_the_hub(path: str, local: bool) -> None:
    found = derive({"flag.model-path": path})
    assert (found["model.local_path"], found["model.must_download"]) == (local, not local)
    assert derive({"model.name": path})["model.local_path"] is local


@pytest.mark.parametrize("here", ["model.path_exists", "model.in_local_cache"])
def test_a_model_that_is_there_needs_no_download(here: str) -> None:
    assert derive({"flag.model-path": "Qwen/Qwen3-8B", here: True})["model.must_download"] is False
    assert "model.must_download" not in derive({})


@pytest.mark.parametrize(
    ("files", "config", "weights", "tokenizer"),
    [
        (["config.json", "a.safetensors", "tokenizer.json"], False, False, False),
        (["params.json", "x/consolidated.safetensors", "tekken.json"], False, False, False),
        (["a.safetensors"], True, False, True),
        (["config.json", "vocab.txt"], False, True, False),
        (["model.gguf"], False, False, None),
        (["config.json", "pytorch_model.bin", "qwen.tiktoken"], False, False, False),
        (["config.json", "model.pt", "sentencepiece.bpe.model"], False, False, False),
        ([{"name": "config.json"}, {"name": "a.safetensors"}, {"name": "tokenizer.model"}], False, False, False),
        ([], True, None, None),
    ],
)
def test_a_folder_misses_what_is_not_in_it(
    files: list[object], config: bool, weights: bool | None, tokenizer: bool | None
) -> None:
    found = derive({"model.files": files})
    names = ("config_missing", "weights_missing", "tokenizer_missing")
    assert tuple(found.get(f"model.{name}") for name in names) == (config, weights, tokenizer)


def test_folder_without_config_is_told_from_a_folder_nobody_looked_into() -> None:
    assert not [name for name in derive({"model.path_exists": True}) if name.endswith("_missing")]


def test_a_closer_look_at_weights_and_tokenizer_goes_before_the_list_of_files() -> None:
    found = derive(
        {"model.files": ["config.json"], "model.weight_files": ["a.safetensors"], "model.has_tokenizer": True}
    )
    assert (found["model.weights_missing"], found["model.tokenizer_missing"]) == (False, False)
    assert derive({"model.weight_files": [], "model.has_tokenizer": False}) == {
        "model.weights_missing": True, "model.tokenizer_missing": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("shard", "bad"),
    [
        ({"name": "x/a.safetensors", "bytes": 10, "expected_bytes": 20}, "a.safetensors"),
        ({"name": "a.safetensors", "bytes": 20, "expected_bytes": 20}, None),
        ({"name": "a.safetensors", "bytes": 134}, "a.safetensors"),
        ({"name": "a.safetensors", "bytes": 1024}, None),
        ({"name": "a.safetensors", "missing": True}, "a.safetensors"),
        ({"name": "a.safetensors", "pointer": True, "bytes": 5000}, "a.safetensors"),
        ({"name": "a.safetensors", "lfs_pointer": True}, "a.safetensors"),
        ({"name": "a.safetensors"}, None),
        ("a.safetensors", None),
    ],
)
def test_short_shards_and_pointers_are_bad(shard: object, bad: str | None) -> None:
    found = derive({"model.weight_files": ["good.safetensors", shard]})
    assert (found["model.bad_shards"], found.get("model.bad_shard")) == (int(bad is not None), bad)


@pytest.mark.parametrize(
    ("wanted", "files", "without"),
    [
        ("safetensors", ["a.bin"], True),
        ("safetensors", ["a.bin", "b.safetensors"], False),
        ("pt", ["a.pth"], False),
        ("npcache", ["a.safetensors"], True),
        ("gguf", ["a.gguf"], False),
        ("auto", ["a.bin"], None),
        ("dummy", ["a.bin"], None),
        ("safetensors", ["notes.txt"], None),
    ],
)
def test_a_load_format_needs_files_of_its_kind(wanted: str, files: list[str], without: bool | None) -> None:
    found = derive({"model.weight_files": files, "flag.load-format": wanted})
    assert found.get("model.load_format_without_files") is without


# --- architectures


@pytest.mark.parametrize(
    ("engine", "known"),
    [
        ("0.5.11", False),
        ("0.5.12", True),
        ("0.5.23", True),
        ("0.5.12.dev77+g1a2b3c4", None),
        ("0.5.11.dev3", False),
        ("0.5.11.post1", None),
        (None, None),
    ],
)
def test_architecture_of_a_later_release_is_unknown_to_an_earlier_one(engine: str | None, known: bool | None) -> None:
    found = derive({"model.architectures": ["DeepseekV4ForCausalLM"], "engine.version": engine})
    assert found.get("model.architecture_known") is known
    assert found.get("model.architecture_first") == ("0.5.12" if engine else None)


def test_an_architecture_that_no_release_lists_says_no_more() -> None:
    found = derive({"model.architectures": ["OwnForCausalLM"], "engine.version": "0.5.9"})
    assert found == {"model.multimodal": False, "model.architecture_listed": False}


def test_of_several_architectures_the_earliest_counts() -> None:
    found = derive({"model.architectures": ["DeepseekV4ForCausalLM", "LlamaForCausalLM"], "engine.version": "0.5.9"})
    assert (found["model.architecture_first"], found["model.architecture_known"]) == ("0.4.10", True)


@pytest.mark.parametrize(
    ("architecture", "multimodal"),
    [("Qwen2_5_VLForConditionalGeneration", True), ("LlavaLlamaForCausalLM", True), ("LlamaForCausalLM", False)],
)
def test_models_that_see_are_told_from_those_that_read(architecture: str, multimodal: bool) -> None:
    assert derive({"model.architectures": [architecture]})["model.multimodal"] is multimodal


def test_facts_that_were_given_are_not_replaced() -> None:
    assert "model.local_path" not in derive({"flag.model-path": "/x", "model.local_path": False})


@pytest.mark.parametrize(
    ("facts", "differs"),
    [
        ({"model.hidden_size": 256, "model.vocab_size": 1000}, False),
        ({"model.hidden_size": 320, "model.vocab_size": 1000}, True),
        ({"model.hidden_size": 256, "model.vocab_size": 999}, True),
        ({"model.hidden_size": 256}, False),
        ({}, None),
        ({"model.hidden_size": 320, "model.quantized": True}, None),
        ({"model.hidden_size": 320, "model.embedding_shape": None}, None),
    ],
)
def test_the_stored_embedding_against_the_configuration(facts: dict[str, object], differs: bool | None) -> None:
    known = {"model.embedding_shape": [1000, 256], "model.quantized": False, **facts}
    assert derive(known).get("model.embedding_differs") is differs


def test_the_weight_files_of_a_draft_are_judged_like_those_of_the_model() -> None:
    facts = derive({"draft.weight_files": [{"name": "a.safetensors", "bytes": 5000, "expected_bytes": 9000}]})
    assert (facts["draft.bad_shards"], facts["draft.bad_shard"]) == (1, "a.safetensors")
    assert derive({"draft.weight_files": []})["draft.weights_missing"] is True
    assert "draft.weights_missing" not in derive({})
