"""Derive facts about hardware: compute capability and memory from the name of a GPU, and the traits of its generation.

A table and pure arithmetic; `launcher.plan.launch_facts` measures a host, and a measured value takes precedence over
the table.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from checks.catalog.conditions import Facts, as_number


class Gpu(Struct, frozen=True, kw_only=True):
    """One product line. `nvlink` None: sold with and without; `vram_gb` None: sold in several sizes."""

    pattern: str
    sm: int | None  # compute capability times ten; None for AMD
    vram_gb: float | None
    nvlink: bool | None
    platform: str = "cuda"


# Compute capabilities: developer.nvidia.com/cuda-gpus. Memory is the size on the data sheet (GB as sold).
# The first matching pattern decides, so longer names precede the names that they contain.
GPUS: tuple[Gpu, ...] = (
    Gpu(pattern=r"GB300", sm=103, vram_gb=278, nvlink=True),
    Gpu(pattern=r"GB200", sm=100, vram_gb=186, nvlink=True),
    Gpu(pattern=r"B300", sm=103, vram_gb=275, nvlink=True),
    Gpu(pattern=r"B200", sm=100, vram_gb=180, nvlink=True),
    Gpu(pattern=r"B100", sm=100, vram_gb=180, nvlink=True),
    Gpu(pattern=r"GB10\b|DGX Spark", sm=121, vram_gb=121, nvlink=False),
    Gpu(pattern=r"Thor", sm=110, vram_gb=122, nvlink=False),
    Gpu(pattern=r"RTX PRO 6000", sm=120, vram_gb=96, nvlink=False),
    Gpu(pattern=r"RTX PRO 5000", sm=120, vram_gb=None, nvlink=False),
    Gpu(pattern=r"RTX PRO", sm=120, vram_gb=None, nvlink=False),
    Gpu(pattern=r"RTX 5090", sm=120, vram_gb=32, nvlink=False),
    Gpu(pattern=r"RTX 5080|RTX 5070 Ti", sm=120, vram_gb=16, nvlink=False),
    Gpu(pattern=r"RTX 50\d0", sm=120, vram_gb=None, nvlink=False),
    Gpu(pattern=r"GH200", sm=90, vram_gb=None, nvlink=True),
    Gpu(pattern=r"H200", sm=90, vram_gb=141, nvlink=None),
    Gpu(pattern=r"H20\b", sm=90, vram_gb=None, nvlink=True),
    Gpu(pattern=r"H100|H800", sm=90, vram_gb=80, nvlink=None),
    Gpu(pattern=r"RTX 6000 Ada", sm=89, vram_gb=48, nvlink=False),
    Gpu(pattern=r"L40S?\b|L20\b", sm=89, vram_gb=48, nvlink=False),
    Gpu(pattern=r"L4\b", sm=89, vram_gb=24, nvlink=False),
    Gpu(pattern=r"RTX 4090", sm=89, vram_gb=None, nvlink=False),
    Gpu(pattern=r"RTX 40\d0", sm=89, vram_gb=None, nvlink=False),
    Gpu(pattern=r"A100|A800", sm=80, vram_gb=None, nvlink=None),
    Gpu(pattern=r"A30\b", sm=80, vram_gb=24, nvlink=None),
    Gpu(pattern=r"RTX A6000|A40\b", sm=86, vram_gb=48, nvlink=None),
    Gpu(pattern=r"RTX A\d000", sm=86, vram_gb=None, nvlink=None),
    Gpu(pattern=r"A10G?\b", sm=86, vram_gb=24, nvlink=False),
    Gpu(pattern=r"RTX 3090", sm=86, vram_gb=24, nvlink=None),
    Gpu(pattern=r"RTX 30\d0", sm=86, vram_gb=None, nvlink=False),
    Gpu(pattern=r"RTX 20\d0|RTX 6000|RTX 8000|T4\b", sm=75, vram_gb=None, nvlink=None),
    Gpu(pattern=r"V100", sm=70, vram_gb=None, nvlink=None),
    Gpu(pattern=r"P100", sm=60, vram_gb=16, nvlink=None),
    Gpu(pattern=r"MI355X?|MI350X?", sm=None, vram_gb=288, nvlink=False, platform="rocm"),
    Gpu(pattern=r"MI325X?", sm=None, vram_gb=256, nvlink=False, platform="rocm"),
    Gpu(pattern=r"MI300[XA]?", sm=None, vram_gb=None, nvlink=False, platform="rocm"),
    Gpu(pattern=r"MI2[15]0X?", sm=None, vram_gb=64, nvlink=False, platform="rocm"),
)

# Shared memory that one block may use, KB (CUDA C++ programming guide, table of technical specifications).
SHARED_MEMORY_KB = {70: 96, 75: 64, 80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 103: 227, 120: 99, 121: 99}


_SLICE = re.compile(r"\bMIG\b|\b\dg\.\d+gb\b")  # a profile of NVIDIA's Multi-Instance GPU guide: `1g.10gb`


def find_gpu(name: str) -> Gpu | None:
    """Return the product line whose pattern matches `name`; None for a GPU that is not in the table."""
    return next((gpu for gpu in GPUS if re.search(gpu.pattern, name, re.IGNORECASE)), None) if name else None


def derive(facts: Facts) -> dict[str, Any]:
    """Return `host.sm vram_gb nvlink platform` unless measured, and `host.` traits of the GPU."""
    name = str(facts.get("host.gpu_name") or "")
    gpu = find_gpu(name)
    derived: dict[str, Any] = _from_table(facts, gpu) if gpu else {}
    visible = str(facts.get("env.CUDA_VISIBLE_DEVICES") or "")
    derived["host.gpu_slice"] = bool(_SLICE.search(name) or visible.startswith("MIG-"))
    derived["launch.platform_plugin"] = bool(facts.get("host.platform_plugins"))
    sm = as_number(derived.get("host.sm", facts.get("host.sm")))
    if derived.get("host.platform", facts.get("host.platform", "cuda")) == "cuda" and sm is not None:
        derived.update(_generation(int(sm)))
    return derived


def _from_table(facts: Facts, gpu: Gpu) -> dict[str, Any]:
    known: dict[str, Any] = {"host.sm": gpu.sm, "host.vram_gb": gpu.vram_gb, "host.nvlink": gpu.nvlink}
    derived: dict[str, Any] = {
        name: value for name, value in known.items() if value is not None and facts.get(name) is None
    }
    if gpu.platform != "cuda" and facts.get("host.platform") in (None, "cuda"):
        derived["host.platform"] = gpu.platform  # `cuda` is only the default of a case that names no platform
    return derived


def _generation(sm: int) -> dict[str, Any]:
    traits: dict[str, Any] = {
        "host.cuda_sm": sm,  # as `host.sm`, but unknown instead of null on other platforms: safe under `unless`
        "host.hopper": sm == 90,
        "host.blackwell": 100 <= sm < 130,
        "host.blackwell_datacenter": 100 <= sm < 110,  # SM100 and SM103: tcgen05, the only home of trtllm-gen kernels
        "host.sm12x": 120 <= sm < 130,  # RTX PRO, RTX 50, GB10: Blackwell by name, no tcgen05, 99 KB per block
        "host.fp8_hardware": sm >= 89,
        "host.nvfp4_hardware": sm >= 100,
    }
    if sm in SHARED_MEMORY_KB:
        traits["host.shared_memory_kb"] = SHARED_MEMORY_KB[sm]
    return traits
