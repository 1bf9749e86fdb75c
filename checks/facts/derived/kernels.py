"""Derive facts about compiled wheels: the torch, CUDA and GPUs that the kernel package was built for; Triton's ptxas.

`packages` covers the other packages, `toolchain` the compilers of the host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from checks.catalog.conditions import Facts, as_number
from checks.facts.derived import cuda
from checks.facts.derived.tables import Requirements, all_requirements, releases
from checks.vocabulary import parse_version

KERNELS = ("sgl-kernel", "sglang-kernel")  # 0.5.10 renamed the distribution; the module stays `sgl_kernel`
# Wheels on PyPI are built for CUDA 13 from 0.4.2 on (0.5.11, the first release that requires cuda-python>=13).
_FIRST_CUDA_13 = "0.4.2"
_DEFAULT_TRITON = (
    ((2, 0), 2.0),
    ((2, 5), 3.1),
    ((2, 6), 3.2),
    ((2, 7), 3.3),
    ((2, 8), 3.4),
    ((2, 9), 3.5),
    ((2, 10), 3.6),
)


def kernel_facts(installed: Mapping[str, Any], wanted: Requirements | None, facts: Facts) -> dict[str, Any]:
    """Return `package.kernel.` name, minimum, version, state, torch, torch_differs, cuda_major, covers_gpu."""
    found = {**_state(installed, wanted), **_arches(installed, facts)}
    if found.get("package.kernel.covers_gpu") is False:
        found.pop("package.kernel.state", None)  # the wheel must be replaced anyway; its age is not a second fault
    version = next((str(installed[name]) for name in KERNELS if installed.get(name)), None)
    if version is None:
        return found
    found["package.kernel.version"] = version
    found.setdefault("package.kernel.name", next(name for name in KERNELS if installed.get(name)))
    built_for, torch = kernel_torch(version), cuda.series(installed.get("torch"))
    if built_for:
        found["package.kernel.torch"] = ".".join(map(str, built_for))
        if torch:
            found["package.kernel.torch_differs"] = torch != built_for
    major, own = kernel_cuda_major(version), cuda.of_torch(installed.get("torch"))
    if major:
        found["package.kernel.cuda_major"] = major
        if own:
            found["package.kernel.cuda_major_differs"] = major != int(own)
    return found


def default_facts(installed: Mapping[str, Any], wanted: Requirements | None, facts: Facts) -> dict[str, Any]:
    """Return `launch.default_` facts: what the release's default install can do on this GPU, if it was not measured."""
    needed = cuda.SM_TOOLKIT.get(int(as_number(facts.get("host.sm")) or 0))
    torch = wanted.pin("torch") if wanted else None
    if needed is None or torch is None or any(installed.get(name) for name in ("torch", *KERNELS)):
        return {}
    found: dict[str, Any] = {}
    built = cuda.of_torch(torch)
    if built is not None:
        found["launch.default_wheels_cover_gpu"] = built >= needed
    if "triton" not in installed and "triton-bundled-ptxas" not in installed:
        bundled = cuda.lookup(cuda.TRITON_PTXAS, cuda.series(cuda.lookup(_DEFAULT_TRITON, cuda.series(torch))))
        if bundled is not None:
            found["launch.default_ptxas_knows_gpu"] = bundled >= needed
    return found


def triton_facts(installed: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """Return `package.triton.ptxas` (CUDA version) and whether it supports the GPU."""
    bundled = cuda.number(installed.get("triton-bundled-ptxas"))
    if bundled is None:
        bundled = cuda.lookup(cuda.TRITON_PTXAS, cuda.series(installed.get("triton")))
    needed = cuda.SM_TOOLKIT.get(int(as_number(facts.get("host.sm")) or 0))
    if bundled is None:
        return {}
    found: dict[str, Any] = {"package.triton.ptxas": bundled}
    return found if needed is None else {**found, "package.triton.ptxas_knows_gpu": bundled >= needed}


def kernel_torch(version: str) -> tuple[int, int] | None:
    """Return the torch series a kernel wheel was built against: that of the releases that pin it or its neighbours.

    None where the neighbours disagree: no release pins the wheel, and it lies between two torch upgrades.
    """
    parsed = parse_version(version.split("+", maxsplit=1)[0])
    if parsed is None:
        return None
    below: tuple[int, int] | None = None
    above: tuple[int, int] | None = None
    for release in releases():
        item = all_requirements()[str(release)]
        pin = parse_version(next((pin for name in KERNELS if (pin := item.pin(name))), ""))
        torch = cuda.series(item.pin("torch"))
        if pin is None:
            continue
        below = torch if pin <= parsed else below
        above = torch if pin >= parsed and above is None else above
    return below if below == above else None


def kernel_cuda_major(version: str) -> int | None:
    """Return the CUDA major of a kernel wheel: from its local version (`+cu130`), else from the build on PyPI."""
    tagged = cuda.of_torch(version) if "+cu" in version else None
    if tagged is not None:
        return int(tagged)
    parsed, first = parse_version(version.split("+", maxsplit=1)[0]), parse_version(_FIRST_CUDA_13)
    return None if parsed is None or first is None else 13 if parsed >= first else 12


def _state(installed: Mapping[str, Any], wanted: Requirements | None) -> dict[str, Any]:
    if wanted is None:
        return {}
    name = next((item for item in KERNELS if item in wanted.minimum), KERNELS[-1])
    minimum = wanted.minimum.get(name)
    found: dict[str, Any] = {"package.kernel.name": name, "package.kernel.minimum": minimum}
    if installed.get(name):
        have, need = parse_version(str(installed[name])), parse_version(minimum or "")
        return {**found, "package.kernel.state": "below" if have and need and have < need else "ok"}
    if any(installed.get(other) for other in KERNELS):
        return {**found, "package.kernel.state": "former-name"}
    return {**found, "package.kernel.state": "absent"} if name in installed else found


def _arches(installed: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    sm = as_number(facts.get("host.sm"))
    if sm is None:
        return {}
    listed = next((installed[f"{name}-arch-list"] for name in KERNELS if installed.get(f"{name}-arch-list")), None)
    if isinstance(listed, list | tuple) and listed:
        return {"package.kernel.covers_gpu": any(_runs_on(str(arch), int(sm)) for arch in listed)}
    kernel = next((str(installed[name]) for name in KERNELS if installed.get(name)), "")
    built = cuda.of_torch(kernel) if "+cu" in kernel else cuda.of_torch(installed.get("torch"))
    needed = cuda.SM_TOOLKIT.get(int(sm))
    if built is None or needed is None or sm < 100:
        return {}
    return {"package.kernel.covers_gpu": built >= needed}


def _runs_on(arch: str, sm: int) -> bool:
    """Return whether code for `arch` runs on `sm`: same major, no lower minor; `a` variants run only on their own."""
    match = re.search(r"(\d{2,3})([af]?)", arch)
    if not match:
        return False
    built = int(match[1])
    return built == sm if match[2] == "a" else built // 10 == sm // 10 and built <= sm
