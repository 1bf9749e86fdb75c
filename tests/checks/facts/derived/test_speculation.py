"""Speculative decoding: the algorithm, the three sizes as the engine takes them, the overlap, and the draft model."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.derived.speculation import derive


def of(algorithm: str | None = "EAGLE", engine: str = "0.5.10", **facts: Any) -> dict[str, Any]:
    """Derived facts; keyword `num_steps` stands for `flag.speculative-num-steps`, `model__x` for `model.x`."""
    named = {
        name.replace("__", ".") if "__" in name else f"flag.speculative-{name.replace('_', '-')}": value
        for name, value in facts.items()
    }
    found = derive({"engine.version": engine, "flag.speculative-algorithm": algorithm, **named})
    return {name.removeprefix("launch."): value for name, value in found.items()}


@pytest.mark.parametrize("algorithm", [None, "", "none", "NONE"])
def test_without_an_algorithm_nothing_speculates(algorithm: str | None) -> None:
    assert of(algorithm) == {"speculative": False, "spec_algorithm": None, "spec_v2": False}


@pytest.mark.parametrize(
    ("algorithm", "family"),
    [
        ("eagle", "eagle"),
        ("EAGLE3", "eagle"),
        ("NextN", "eagle"),
        ("STANDALONE", "eagle"),
        ("NGRAM", "ngram"),
        ("DFLASH", "dflash"),
    ],
)
def test_an_algorithm_belongs_to_a_family(algorithm: str, family: str) -> None:
    found = of(algorithm)
    assert (found["speculative"], found["spec_algorithm"], found["spec_family"]) == (True, algorithm.upper(), family)


def test_a_draft_path_is_noticed() -> None:
    assert of(draft_model_path="/d")["spec_has_draft_path"] is True
    assert of()["spec_has_draft_path"] is False


@pytest.mark.parametrize(
    ("sizes", "triple"),
    [
        ({}, "none"),
        ({"eagle_topk": "1", "num_draft_tokens": "2"}, "partial"),
        ({"num_steps": "3"}, "partial"),
        ({"num_steps": "3", "eagle_topk": "1"}, "complete"),
        ({"num_steps": "3", "eagle_topk": "4"}, "partial"),
        ({"num_steps": "3", "eagle_topk": "4", "num_draft_tokens": "8"}, "complete"),
        ({"eagle_topk": "1", "adaptive": True}, "complete"),
        ({"adaptive": True}, "none"),
    ],
)
def test_a_chain_needs_no_draft_tokens_but_steps_and_topk(sizes: dict[str, Any], triple: str) -> None:
    assert of(**sizes)["spec_triple"] == triple
    assert of("NGRAM", **sizes)["spec_triple"] == "none"


@pytest.mark.parametrize(
    ("algorithm", "facts", "sizes"),
    [
        ("EAGLE", {"num_steps": "3", "eagle_topk": "1", "num_draft_tokens": "8"}, (3, 1, 4)),
        ("EAGLE", {"num_steps": "3", "eagle_topk": "4", "num_draft_tokens": "8"}, (3, 4, 8)),
        ("EAGLE", {"eagle_topk": "1"}, (None, 1, None)),
        ("EAGLE3", {"model__architectures": ["LlamaForCausalLM"]}, (5, 4, 8)),
        ("EAGLE3", {"model__architectures": ["Qwen3ForCausalLM"]}, (3, 1, 4)),
        ("STANDALONE", {"model__architectures": ["LlamaForCausalLM"]}, (5, 4, 8)),
        ("EAGLE3", {}, (None, None, None)),
        ("DFLASH", {}, (1, 1, None)),
        ("DFLASH", {"dflash_block_size": "16"}, (1, 1, 16)),
        ("DSPARK", {"num_draft_tokens": "7", "dflash_block_size": "16"}, (1, 1, 7)),
        ("NGRAM", {"num_draft_tokens": "12"}, (None, None, 12)),
    ],
)
def test_sizes_are_those_that_the_engine_will_take(
    algorithm: str, facts: dict[str, Any], sizes: tuple[int | None, ...]
) -> None:
    found = of(algorithm, **facts)
    assert tuple(found.get(f"spec_{name}") for name in ("steps", "topk", "draft_tokens")) == sizes


@pytest.mark.parametrize(
    ("engine", "env", "flags", "overlapped"),
    [
        ("0.5.4", None, {}, False),
        ("0.5.4", "1", {}, False),
        ("0.5.4", None, {"flag__enable-beta-spec": True}, True),
        ("0.5.10", None, {}, False),
        ("0.5.10", "1", {}, True),
        ("0.5.10", "False", {}, False),
        ("0.5.11", None, {}, True),
        ("0.5.12", "0", {}, False),
        ("0.5.12", None, {"eagle_topk": "4"}, False),
        ("0.5.14", "0", {}, True),
        ("0.5.14", None, {"eagle_topk": "4"}, True),
        ("0.5.14", None, {"flag__disable-overlap-schedule": True}, False),
    ],
)
def test_the_switch_of_overlapped_speculation_moved(
    engine: str, env: str | None, flags: dict[str, Any], overlapped: bool
) -> None:
    assert of("EAGLE", engine, env__SGLANG_ENABLE_SPEC_V2=env, **flags)["spec_v2"] is overlapped


def test_other_families_overlap_always_or_never() -> None:
    assert of("DFLASH", "0.5.9")["spec_v2"] is True
    assert of("NGRAM", "0.5.14", env__SGLANG_ENABLE_SPEC_V2="1")["spec_v2"] is False


@pytest.mark.parametrize(
    ("context", "past"), [(None, True), ("32768", True), ("32764", False), ("32765", True), ("4096", False)]
)
def test_verification_writes_past_the_context_by_its_draft_tokens(context: str | None, past: bool) -> None:
    facts: dict[str, Any] = {"num_steps": "3", "eagle_topk": "1", "model__max_position_embeddings": 32768}
    facts["flag__context-length"] = context
    assert of(**facts)["spec_past_context"] is past


def test_without_a_known_limit_nothing_is_said_about_running_past_it() -> None:
    assert "spec_past_context" not in of(num_steps="3", eagle_topk="1", **{"flag__context-length": "4096"})


@pytest.mark.parametrize(
    ("facts", "name", "value"),
    [
        ({"draft__max_position_embeddings": 2048, "flag__context-length": "4096"}, "draft_context_short", True),
        ({"draft__max_position_embeddings": 4096, "flag__context-length": "4096"}, "draft_context_short", False),
        ({"draft__max_position_embeddings": 2048, "model__max_position_embeddings": 8192}, "draft_context_short", True),
        ({"draft__max_position_embeddings": 2048}, "draft_context_short", None),
        ({"model__mtp_dtype": "bfloat16", "model__routed_experts": "fp8"}, "draft_experts_differ", True),
        ({"model__mtp_dtype": "fp8", "model__routed_experts": "fp8"}, "draft_experts_differ", False),
        ({"model__mtp_dtype": "fp8"}, "draft_experts_differ", None),
        ({"model__vocab_size": 1000, "draft__vocab_size": 1000}, "draft_vocab_size_differs", False),
        ({"model__vocab_size": 1000, "draft__vocab_size": 999}, "draft_vocab_size_differs", True),
        ({"model__hidden_size": 10, "draft__hidden_size": 20}, "draft_hidden_size_differs", True),
        ({"model__mla": True, "draft__mla": False}, "draft_mla_differs", True),
        ({"model__mla": True}, "draft_mla_differs", None),
    ],
)
def test_a_draft_model_is_compared_where_both_sides_are_known(
    facts: dict[str, Any], name: str, value: bool | None
) -> None:
    assert of(**facts).get(name) is value
