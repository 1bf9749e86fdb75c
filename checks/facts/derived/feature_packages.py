"""Packages that a setting imports when it is used: absent ones are found before the start, not by the first rank.

Each row names the engine's own import, which a release of another time may lack; a package counts as missing only if
the host was asked for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from checks.catalog.conditions import Facts


class Feature(Struct, frozen=True):
    """An option, the values that import a package (none: any), the distributions of which one is enough, the import."""

    option: str
    values: tuple[str, ...]
    packages: tuple[str, ...]
    imported_at: str


_CUTLASS = ("nvidia-cutlass-dsl",)
_MOONCAKE = ("mooncake-transfer-engine", "mooncake-transfer-engine-cuda13", "mooncake-transfer-engine-non-cuda")
FEATURES = (
    Feature("use-ray", ("True",), ("ray",), "0.5.23:srt/ray/scheduler_actor.py"),
    Feature("device", ("npu",), ("torch-npu",), "0.5.23:srt/hardware_backend/npu/cmo.py"),
    Feature("moe-a2a-backend", ("mooncake",), _MOONCAKE, "0.5.23:srt/layers/moe/token_dispatcher/mooncake.py"),
    Feature("attention-backend", ("fa4",), _CUTLASS, "0.5.11:srt/layers/attention/flashattention_backend.py"),
    Feature("linear-attn-backend", ("cutedsl",), _CUTLASS, "0.5.11:srt/layers/attention/linear/kernels"),
    Feature("linear-attn-decode-backend", ("cutedsl", "flashinfer"), _CUTLASS, "0.5.11:srt/layers/attention/linear"),
    Feature("linear-attn-prefill-backend", ("cutedsl",), _CUTLASS, "0.5.11:srt/layers/attention/linear/kernels"),
    Feature("moe-runner-backend", ("flashinfer_cutedsl",), _CUTLASS, "0.5.11:srt/layers/moe/flashinfer_cutedsl_moe.py"),
    Feature("grammar-backend", ("xgrammar",), ("xgrammar",), "0.5.11:srt/constrained/xgrammar_backend.py"),
    Feature("grammar-backend", ("outlines",), ("outlines",), "0.5.11:srt/constrained/outlines_backend.py"),
    Feature("grammar-backend", ("llguidance",), ("llguidance",), "0.5.11:srt/constrained/llguidance_backend.py"),
    Feature("enable-lmcache", ("True",), ("lmcache",), "0.5.11:srt/mem_cache/storage/lmcache"),
    Feature("hicache-storage-backend", ("mooncake",), _MOONCAKE, "0.5.11:srt/mem_cache/storage/mooncake_store"),
    Feature("hicache-storage-backend", ("nixl",), ("nixl",), "0.5.23:srt/mem_cache/storage/nixl/hicache_nixl.py"),
    Feature("hicache-storage-backend", ("aibrix",), ("aibrix-kvcache",), "0.5.11:srt/mem_cache/storage/aibrix_kvcache"),
    Feature(
        "enable-memory-saver", ("True",), ("torch-memory-saver",), "0.5.11:srt/utils/torch_memory_saver_adapter.py"
    ),
    Feature("enable-trace", ("True",), ("opentelemetry-sdk",), "0.5.23:srt/observability/trace.py"),
    Feature("load-format", ("runai_streamer",), ("runai-model-streamer",), "0.5.11:srt/model_loader/weight_utils.py"),
    Feature("load-format", ("bitsandbytes",), ("bitsandbytes",), "0.5.11:srt/model_loader/loader.py"),
    Feature("quantization", ("bitsandbytes",), ("bitsandbytes",), "0.5.11:srt/model_loader/loader.py"),
    Feature("load-format", ("gguf",), ("gguf",), "0.5.11:srt/model_loader/loader.py"),
    Feature("quantization", ("gguf",), ("gguf",), "0.5.11:srt/model_loader/loader.py"),
    Feature("quantization", ("petit_nvfp4",), ("petit-kernel",), "0.5.11:srt/layers/quantization/petit_utils.py"),
    Feature("model-impl", ("mindspore",), ("mindspore",), "0.5.23:srt/models/mindspore.py"),
    Feature("tokenizer-backend", ("fastokens",), ("fastokens",), "0.5.23:srt/utils/hf_transformers/tokenizer.py"),
    Feature("kt-weight-path", (), ("kt-kernel",), "0.5.11:srt/layers/moe/kt_ep_wrapper.py"),
)


def asked_packages() -> frozenset[str]:
    """Return every package that a host has to be asked for."""
    return frozenset(name for feature in FEATURES for name in feature.packages)


def derive(facts: Facts) -> dict[str, Any]:
    """Return `launch.packages_missing`: what the settings import and the host lacks, one text for each setting."""
    missing = list(_missing(facts))
    return {"launch.packages_missing": missing} if missing else {}


def _missing(facts: Facts) -> Iterator[str]:
    for feature in FEATURES:
        value = facts.get(f"flag.{feature.option}")
        if value in (None, False) or (feature.values and str(value) not in feature.values):
            continue
        names = [f"package.{name}" for name in feature.packages]
        if all(name in facts and facts[name] is None for name in names):
            shown = f"--{feature.option}" + ("" if value is True else f" {value}")
            yield f"{shown} needs {feature.packages[0]}"
