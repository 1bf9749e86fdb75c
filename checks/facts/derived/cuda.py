"""CUDA version tables: the CUDA versions of drivers, torch wheels, Triton wheels and GPU generations.

Pure look-ups on version text; `packages`, `kernels` and `toolchain` derive facts from them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Highest CUDA version of a driver branch (CUDA toolkit release notes, table of corresponding driver versions).
DRIVER_CUDA = (
    (470, 11.4), (510, 11.6), (515, 11.7), (520, 11.8), (525, 12.0), (530, 12.1), (535, 12.2), (545, 12.3),
    (550, 12.4), (555, 12.5), (560, 12.6), (565, 12.7), (570, 12.8), (575, 12.9), (580, 13.0), (590, 13.1),
)  # fmt: skip
# CUDA of the torch wheel on PyPI, for wheels without a local version (pytorch.org, "previous versions").
TORCH_CUDA = (
    ((2, 1), 12.1), ((2, 2), 12.1), ((2, 3), 12.1), ((2, 4), 12.1), ((2, 5), 12.4), ((2, 6), 12.4), ((2, 7), 12.6),
    ((2, 8), 12.8), ((2, 9), 12.8), ((2, 10), 12.8), ((2, 11), 13.0),
)  # fmt: skip
# Assembler inside the Triton wheel, for SM100 and later (triton: cmake/nvidia-toolchain-version.json of each release).
TRITON_PTXAS = (((3, 0), 12.4), ((3, 3), 12.8), ((3, 6), 12.9))
# First CUDA toolkit that supports an architecture (CUDA toolkit release notes).
SM_TOOLKIT = {75: 10.0, 80: 11.0, 86: 11.1, 89: 11.8, 90: 11.8, 100: 12.8, 103: 12.9, 110: 13.0, 120: 12.8, 121: 12.9}


def number(version: object) -> float | None:
    """Return `major.minor` of a CUDA version (`12.8`, `cuda-12.8`, `12.8.93`, `V12.8`) as a number, or None."""
    found = re.search(r"(\d{1,2})(?:\.(\d))?", str(version)) if version not in (None, False, True, "") else None
    return float(f"{found[1]}.{found[2] or 0}") if found else None


def of_driver(driver: object) -> float | None:
    """Return the highest CUDA version that a driver supports, from its branch (`570.195.03` → 12.8), or None."""
    found = re.match(r"\s*(\d{3})\b", str(driver))
    branch = int(found[1]) if found else 0
    return next((cuda for first, cuda in reversed(DRIVER_CUDA) if branch >= first), None)


def of_torch(version: object) -> float | None:
    """Return the CUDA version of a torch wheel: from `+cu130`, else that of PyPI; None for ROCm and CPU wheels."""
    text = str(version or "")
    local = re.search(r"\+cu(\d+)(\d)", text)
    if local:
        return float(f"{local[1]}.{local[2]}")
    if "+" in text and not re.search(r"\+(git|nv)", text):
        return None
    return lookup(TORCH_CUDA, series(text))


def series(version: object) -> tuple[int, int] | None:
    """Return `(major, minor)` of a version text, or None."""
    found = re.match(r"\D*(\d+)\.(\d+)", str(version or ""))
    return (int(found[1]), int(found[2])) if found else None


def lookup(table: Sequence[tuple[tuple[int, int], float]], key: tuple[int, int] | None) -> float | None:
    """Return the value of the last row at or below `key`; None below the first row or without a key."""
    if key is None:
        return None
    return next((value for first, value in reversed(table) if key >= first), None)
