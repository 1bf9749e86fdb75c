"""Driver, compilers and libraries of a host against the launch, and which launches build kernels at all."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.derived.toolchain import derive


@pytest.mark.parametrize(
    ("driver", "torch", "supports", "behind"),
    [
        ("570.195.03", 13.0, False, True),
        ("570.195.03", 12.9, True, True),
        ("580.95.05", 12.8, True, False),
        ("570.195.03", 12.8, True, False),
    ],
)
def test_newer_cuda_runs_within_one_major_version_only(driver: str, torch: float, supports: bool, behind: bool) -> None:
    found = derive({"host.driver": driver, "package.torch.cuda": torch})
    assert (found["host.driver_supports_torch"], found["host.driver_behind_torch"]) == (supports, behind)


@pytest.mark.parametrize(
    ("engine", "driver", "supports"),
    [
        ("0.5.9", "570.195.03", True),
        ("0.5.11", "570.195.03", False),
        ("0.5.11", "580.95.05", True),
        (None, "570.1", None),
    ],
)
def test_without_torch_the_driver_is_held_against_what_the_release_installs(
    engine: str | None, driver: str, supports: bool | None
) -> None:
    found = derive({"engine.version": engine, "host.driver": driver})
    assert found.get("host.driver_supports_release") is supports
    assert "host.driver_supports_release" not in derive(
        {"engine.version": "0.5.9", "host.driver": driver, "package.torch": "2.9.1+cpu"}
    )


def test_the_driver_s_own_word_goes_before_its_branch() -> None:
    assert derive({"host.driver": "570.195.03", "host.driver_cuda": "13.0"})["host.driver_cuda_version"] == 13.0
    assert derive({"host.driver": "570.195.03"})["host.driver_cuda_version"] == 12.8


@pytest.mark.parametrize(
    ("facts", "absent"),
    [
        ({"host.driver": None}, True),
        ({"host.driver": ""}, True),
        ({"host.driver": "580.95.05"}, False),
        ({"host.driver": "580.95.05", "host.gpus_visible": 0}, True),
        ({"host.gpus_visible": []}, True),
        ({"host.gpus_visible": [0, 1]}, False),
        ({}, None),
    ],
)
def test_absent_driver_is_told_from_one_nobody_looked_for(facts: dict[str, Any], absent: bool | None) -> None:
    assert derive(facts).get("host.driver_absent") is absent


# --- compilers


@pytest.mark.parametrize(
    ("home", "malformed"),
    [
        ("/usr/local/cuda-12.8", False),
        ("/usr/local/cuda-12.8/", False),
        ("/usr/local/cuda\n", False),
        (":/usr/local/cuda", True),
        ("/usr/local/cuda:/opt/cuda", True),
        ("/usr/local/cuda;/x", True),
        ("/usr/local/my cuda", True),
        ('"/usr/local/cuda"', True),
        ("cuda-12.8", True),
    ],
)
def test_toolkit_variable_must_be_one_directory(home: str, malformed: bool) -> None:
    for name in ("env.CUDA_HOME", "env.CUDA_PATH", "host.cuda_home"):
        found = derive({name: home})
        assert (found["host.cuda_home_malformed"], found["host.cuda_home_text"]) == (malformed, home)
    assert "host.cuda_home_malformed" not in derive({})


@pytest.mark.parametrize(
    ("sm", "nvcc", "version", "knows"),
    [
        (100, "12.8", 12.8, True),
        (103, "12.8", 12.8, False),
        (120, "V12.4.131", 12.4, False),
        (90, "12.1", 12.1, True),
        (None, "12.1", 12.1, None),
        (90, None, None, None),
    ],
)
def test_compiler_is_judged_by_the_gpu(
    sm: int | None, nvcc: str | None, version: float | None, knows: bool | None
) -> None:
    found = derive({"host.sm": sm, "host.nvcc": nvcc})
    assert (found.get("host.nvcc_version"), found.get("host.nvcc_knows_gpu")) == (version, knows)
    assert found["host.nvcc_absent"] is (nvcc is None)


@pytest.mark.parametrize("program", ["nvcc", "gcc", "cuobjdump", "python_headers", "ninja"])
def test_a_program_is_absent_only_where_it_was_looked_for(program: str) -> None:
    for nothing in (None, False, ""):
        assert derive({f"host.{program}": nothing})[f"host.{program}_absent"] is True
    assert derive({f"host.{program}": "/usr/bin/x"})[f"host.{program}_absent"] is False
    assert f"host.{program}_absent" not in derive({})


def test_ninja_may_be_a_package() -> None:
    assert derive({"package.ninja": "1.13"})["host.ninja_absent"] is False
    assert derive({"package.ninja": None})["host.ninja_absent"] is True
    assert derive({"package.ninja": "1.13", "host.ninja": None})["host.ninja_absent"] is True


# --- libraries


@pytest.mark.parametrize(("text", "number"), [("2.4", 2.04), ("2.34", 2.34), ("glibc 2.28", 2.28), ("musl 1.2", None)])
def test_c_library_versions_are_compared_as_versions(text: str, number: float | None) -> None:
    assert derive({"host.glibc": text}).get("host.glibc_version") == (
        number if number is None else pytest.approx(number)
    )


@pytest.mark.parametrize(
    ("missing", "listed"), [("libnuma.so.1", ["libnuma.so.1"]), (["a", "b"], ["a", "b"]), ([], []), (None, None)]
)
def test_missing_libraries_are_a_list(missing: object, listed: list[str] | None) -> None:
    assert derive({"host.missing_libraries": missing}).get("host.libraries_missing") == listed


@pytest.mark.parametrize(
    ("present", "major", "mismatch"),
    [
        (["libcudart.so.12"], 13, True),
        (["libcudart.so.12", "libcudart.so.13"], 13, False),
        (["nvidia-cublas-cu12"], 12, False),
        ({"libcublas": "/usr/local/cuda-12/lib"}, 13, True),
        ("libcudart.so.13", 12, True),
        (["libcudart.so"], 13, False),
        ([], 13, None),
    ],
)
def test_libraries_of_another_cuda_major_do_not_help(present: object, major: int, mismatch: bool | None) -> None:
    for name, value in (("package.kernel.cuda_major", major), ("package.torch.cuda", float(major))):
        found = derive({"host.cuda_libraries": present, name: value})
        assert found.get("host.cuda_libraries_mismatch") is mismatch


# --- what is built


@pytest.mark.parametrize(
    ("facts", "needs"),
    [
        ({"engine.version": "0.5.8"}, False),
        ({"engine.version": "0.5.9"}, True),
        ({}, False),
        ({"launch.attention_backend": "flashinfer"}, True),
        ({"launch.prefill_attention_backend": "trtllm_mha"}, True),
        ({"launch.decode_attention_backend": "cutlass_mla"}, True),
        ({"launch.attention_backend": "fa3"}, False),
        ({"flag.moe-runner-backend": "flashinfer_cutlass"}, True),
        ({"flag.sampling-backend": "pytorch"}, False),
    ],
)
def test_kernels_are_compiled_for_some_backends_and_always_from_0_5_9(facts: dict[str, Any], needs: bool) -> None:
    assert derive(facts)["launch.needs_jit"] is needs


@pytest.mark.parametrize(("engine", "cached"), [("0.5.8", True), ("0.5.9", False)])
def test_a_package_of_compiled_kernels_spares_that_until_the_engine_has_its_own(engine: str, cached: bool) -> None:
    assert derive({"engine.version": engine, "package.flashinfer-jit-cache": "0.6"})["launch.jit_cache"] is cached
    assert derive({"engine.version": engine})["launch.jit_cache"] is False


@pytest.mark.parametrize(
    ("facts", "used"),
    [
        ({}, True),
        ({"host.sm": 100}, True),
        ({"host.sm": 120}, False),
        ({"host.sm": 89}, False),
        ({"model.fp8_block": False}, False),
        ({"env.SGLANG_ENABLE_JIT_DEEPGEMM": "0"}, False),
        ({"env.SGLANG_ENABLE_JIT_DEEPGEMM": "False"}, False),
        ({"env.SGLANG_ENABLE_JIT_DEEPGEMM": "1"}, True),
        ({"env.SGL_ENABLE_JIT_DEEPGEMM": "0"}, False),
        ({"env.SGLANG_ENABLE_JIT_DEEPGEMM": "1", "env.SGL_ENABLE_JIT_DEEPGEMM": "0"}, True),
        ({"flag.fp8-gemm-backend": "triton"}, False),
        ({"flag.fp8-gemm-backend": "deep_gemm"}, True),
        ({"host.sm": None}, None),
        ({"model.fp8_block": None}, None),
    ],
)
def test_block_scaled_fp8_goes_to_deepgemm_on_data_centre_gpus(facts: dict[str, Any], used: bool | None) -> None:
    assert derive({"host.sm": 90, "model.fp8_block": True, **facts}).get("launch.deep_gemm") is used


def test_nothing_is_said_on_other_platforms_and_nothing_measured_is_replaced() -> None:
    assert derive({"host.platform": "rocm", "host.driver": None}) == {}
    assert "host.nvcc_version" not in derive({"host.nvcc": "12.8", "host.nvcc_version": 12.4})
