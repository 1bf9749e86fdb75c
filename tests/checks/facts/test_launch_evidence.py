"""Evidence of any origin → flat facts: names, spellings, what nobody looked at, and case files that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.launch_evidence import Launch, build, from_case, load_newest


def facts(**parts: Any) -> dict[str, Any]:
    return dict(build(Launch(**parts))[0])


@pytest.mark.parametrize(
    ("parts", "name", "value"),
    [
        ({"engine": "0.5.10"}, "engine.version", "0.5.10"),
        ({"engine": "0.5.10"}, "engine.known", True),
        ({"engine": "0.5.10.post9"}, "engine.known", False),
        ({"flags": {"tensor-parallel-size": "8"}}, "flag.tp-size", "8"),
        ({"env": {"NCCL_DEBUG": "INFO"}}, "env.NCCL_DEBUG", "INFO"),
        ({"gpu": {"name": "NVIDIA H200"}}, "host.gpu_name", "NVIDIA H200"),
        ({"gpu": {"count": 8}}, "host.gpu_count", 8),
        ({"gpu": {"vram_gb": 141}}, "host.vram_gb", 141),
        ({"gpu": {"platform": "rocm"}}, "host.platform", "rocm"),
        ({}, "host.platform", "cuda"),
        ({"model": {"name": "m"}}, "model.name", "m"),
        ({"draft_model": {"vocab_size": 9}}, "draft.vocab_size", 9),
        ({"packages": {"torch": "2.9.1"}}, "package.torch", "2.9.1"),
        ({"packages": {"torch": None}}, "package.torch", None),
        ({"host": {"shm_gb": 1}}, "host.shm_gb", 1),
        ({"observed": {"kind": "hang"}}, "observed.kind", "hang"),
    ],
)
def test_each_kind_of_evidence_has_its_names(parts: dict[str, Any], name: str, value: object) -> None:
    assert facts(**parts)[name] == value


@pytest.mark.parametrize(
    ("written", "sm"),
    [
        (120, 120), ("120", 120), ("sm_120", 120), ("SM90", 90), ("12.0", 120), (12.1, 121), ("8.6", 86), ("9", 90),
        ("odd", "odd"), (None, None),
    ],
)  # fmt: skip
def test_a_compute_capability_is_one_number_however_it_is_written(written: object, sm: object) -> None:
    assert facts(gpu={"sm": written})["host.sm"] == sm


@pytest.mark.parametrize(
    ("quantization", "quantized", "method"),
    [({"quant_method": "fp8", "bits": 8}, True, "fp8"), ({}, False, None), (None, False, None)],
)
def test_a_quantisation_is_taken_apart(quantization: Any, quantized: bool, method: str | None) -> None:
    found = facts(model={"quantization": quantization})
    assert (found["model.quantized"], found["model.quant_method"]) == (quantized, method)
    assert found.get("model.quant.bits") == (8 if quantized else None)
    assert "model.quantization" not in found


def test_what_nobody_looked_at_is_no_fact() -> None:
    found = facts()
    assert found["engine.version"] is None
    assert not [name for name in found if name.startswith(("flag.", "env.", "package.", "observed."))]
    assert "model.quantized" not in found and "host.sm" not in found


def test_facts_that_need_arithmetic_are_there_too() -> None:
    found = facts(engine="0.5.10", flags={"tp": "8", "dp": "2"}, gpu={"name": "NVIDIA H200"})
    assert (found["launch.gpus_wanted"], found["host.sm"]) == (16, 90)


def test_flags_given_twice_are_found_on_the_way() -> None:
    _, findings = build(Launch(engine="0.5.9", flags={"tp-size": "4", "tensor-parallel-size": "8"}))
    assert [finding.id for finding in findings] == ["flag-given-twice"]
    assert build(Launch(flags={"tp-size": "4"}))[1] == []


def test_without_a_release_names_are_those_of_the_newest() -> None:
    assert facts(flags={"mamba-scheduler-strategy": "x"})["flag.mamba-radix-cache-strategy"] == "x"
    assert load_newest().version == load_newest().asked


# --- case files


@pytest.mark.parametrize("key", ["engine_version", "engine"])
def test_a_case_names_the_release_in_either_way(key: str) -> None:
    assert from_case({key: "0.5.10"}).engine == "0.5.10"
    assert from_case({key: ""}).engine is None
    assert from_case({}).engine is None


def test_a_case_fills_a_launch() -> None:
    launch = from_case(
        {"model": "Qwen3-8B", "flags": {"tp": "8"}, "env": None, "packages": {"torch": None}, "other": 1}
    )
    assert (launch.model, launch.flags, launch.env, launch.packages) == (
        {"name": "Qwen3-8B"}, {"tp": "8"}, {}, {"torch": None},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("case", "complaint"),
    [
        ({"flags": ["--tp", "8"]}, "`flags` must be a mapping, but is of type list"),
        ({"env": "A=1"}, "`env` must be a mapping, but is of type str"),
        ({"gpu": 8}, "`gpu` must be a mapping, but is of type int"),
        ({"draft_model": "x"}, "`draft_model` must be a mapping, but is of type str"),
    ],
)
def test_a_malformed_case_names_the_offending_key(case: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        from_case(case)


def test_numbers_in_a_case_file_are_text_as_on_a_command_line() -> None:
    flags = {"tp-size": 8, "mem-fraction-static": 0.8, "cuda-graph-bs": [1, 2], "enable-lora": True, "dtype": "half"}
    typed = {
        "tp-size": "8",
        "mem-fraction-static": "0.8",
        "cuda-graph-bs": ["1", "2"],
        "enable-lora": True,
        "dtype": "half",
    }
    assert from_case({"flags": flags}).flags == typed


def test_a_quantisation_may_be_given_by_its_name() -> None:
    assert facts(model={"quantization": "awq"})["model.quant_method"] == "awq"
