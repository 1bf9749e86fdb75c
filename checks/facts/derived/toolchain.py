"""Derive facts about driver and compilers: driver against torch, nvcc against the GPU, tools missing for a build.

Each fact compares a measured `host.` value with the launch. `packages` and `kernels` cover installed wheels.
"""

from __future__ import annotations

import re
from typing import Any

from checks.catalog.conditions import Facts, as_number
from checks.facts.derived import cuda
from checks.facts.derived.tables import requirements
from checks.vocabulary import EngineRange

# From 0.5.9 on the engine compiles its own kernels at first use (0.5.9:srt/jit_kernel, through apache-tvm-ffi).
_OWN_JIT = EngineRange(">=0.5.9")
_COMPILED_BACKENDS = ("flashinfer", "trtllm_mha", "trtllm_mla", "cutlass_mla")
_OFF = ("0", "false", "no", "off")


def derive(facts: Facts) -> dict[str, Any]:
    """Return `host.driver_* nvcc_* cuda_home_* *_absent glibc_version ...` and `launch.needs_jit deep_gemm`."""
    if facts.get("host.platform", "cuda") != "cuda":
        return {}
    found = {**_driver(facts), **_compilers(facts), **_libraries(facts), **_builds(facts)}
    return {name: value for name, value in found.items() if value is not None and facts.get(name) is None}


def _driver(facts: Facts) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "host.driver" in facts or "host.gpus_visible" in facts:
        found["host.driver_absent"] = facts.get("host.driver", "?") in (None, False, "") or _visible(facts) == 0
    supported = cuda.number(facts.get("host.driver_cuda")) or cuda.of_driver(facts.get("host.driver"))
    if supported is None:
        return found
    found["host.driver_cuda_version"] = supported
    built = as_number(facts.get("package.torch.cuda"))
    if built is not None:
        # Within one CUDA major a newer toolkit runs on an older driver (minor version compatibility).
        found["host.driver_supports_torch"] = supported >= built or int(supported) == int(built)
        found["host.driver_behind_torch"] = supported < built
        return found
    wanted = requirements(facts.get("engine.version"))
    default = cuda.of_torch(wanted.pin("torch")) if wanted else None
    if default is not None and not facts.get("package.torch"):
        found["host.driver_supports_release"] = int(supported) >= int(default)
    return found


def _visible(facts: Facts) -> float | None:
    visible = facts.get("host.gpus_visible")
    return float(len(visible)) if isinstance(visible, list | tuple) else as_number(visible)


def _compilers(facts: Facts) -> dict[str, Any]:
    found: dict[str, Any] = {}
    home = facts.get("env.CUDA_HOME") or facts.get("env.CUDA_PATH") or facts.get("host.cuda_home")
    if isinstance(home, str):
        found["host.cuda_home_malformed"] = bool(re.search(r"[:;,\s'\"]|^(?!/).", home.strip("\n")))
        found["host.cuda_home_text"] = home
    for program in ("nvcc", "gcc", "cuobjdump", "python_headers"):
        if f"host.{program}" in facts:
            found[f"host.{program}_absent"] = facts[f"host.{program}"] in (None, False, "")
    if "host.ninja" in facts or "package.ninja" in facts:
        named = "host.ninja" if "host.ninja" in facts else "package.ninja"
        found["host.ninja_absent"] = facts[named] in (None, False, "")
    compiler = cuda.number(facts.get("host.nvcc"))
    if compiler is None:
        return found
    found["host.nvcc_version"] = compiler
    needed = cuda.SM_TOOLKIT.get(int(as_number(facts.get("host.sm")) or 0))
    if needed is not None:
        found["host.nvcc_knows_gpu"] = compiler >= needed
    return found


def _libraries(facts: Facts) -> dict[str, Any]:
    found: dict[str, Any] = {}
    missing = facts.get("host.missing_libraries")
    if isinstance(missing, list | tuple | str):
        found["host.libraries_missing"] = [missing] if isinstance(missing, str) else [str(item) for item in missing]
    glibc = re.match(r"\D*2\.(\d+)", str(facts.get("host.glibc") or ""))
    if glibc:
        found["host.glibc_version"] = 2 + int(glibc[1]) / 100  # 2.4 is older than 2.34
    present = facts.get("host.cuda_libraries")
    wanted = facts.get("package.kernel.cuda_major") or as_number(facts.get("package.torch.cuda"))
    if present and wanted:
        items = [*present, *present.values()] if isinstance(present, dict) else present
        text = " ".join(map(str, items)) if isinstance(items, list | tuple) else str(items)
        majors = {int(major) for major in re.findall(r"(?:\.so\.|cu|cuda-?|^|[\s'\"])(1[1-9])\b", text)}
        found["host.cuda_libraries_mismatch"] = bool(majors) and int(wanted) not in majors
    return found


def _builds(facts: Facts) -> dict[str, Any]:
    backends = [facts.get(f"launch.{name}attention_backend") for name in ("", "prefill_", "decode_")]
    flashinfer = any(str(facts.get(f"flag.{name}") or "").startswith("flashinfer") for name in
                     ("moe-runner-backend", "fp4-gemm-backend", "fp8-gemm-backend", "sampling-backend"))  # fmt: skip
    needs = flashinfer or any(backend in _COMPILED_BACKENDS for backend in backends)
    version = facts.get("engine.version")
    return {
        "launch.needs_jit": needs or (bool(version) and _OWN_JIT.contains(version)),
        "launch.jit_cache": bool(facts.get("package.flashinfer-jit-cache")) and not _OWN_JIT.contains(version),
        "launch.deep_gemm": _deep_gemm(facts),
    }


def _deep_gemm(facts: Facts) -> bool | None:
    """Return whether DeepGEMM runs block-scaled FP8 products: on SM90 and SM100, unless off or another is chosen."""
    sm, block = as_number(facts.get("host.sm")), facts.get("model.fp8_block")
    if sm is None or block is None:
        return None
    switch = facts.get("env.SGLANG_ENABLE_JIT_DEEPGEMM", facts.get("env.SGL_ENABLE_JIT_DEEPGEMM"))
    other = str(facts.get("flag.fp8-gemm-backend") or "auto") not in ("auto", "deep_gemm")
    capable = 90 <= sm < 110
    return bool(block) and capable and not other and str(switch).lower() not in _OFF
