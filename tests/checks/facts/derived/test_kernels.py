"""Kernel and Triton wheels: which torch, CUDA and GPUs they were built for, and what an untouched install can do."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.derived.kernels import (
    default_facts,
    kernel_cuda_major,
    kernel_facts,
    kernel_torch,
    triton_facts,
)
from checks.facts.derived.tables import requirements

RELEASE = requirements("0.5.9")  # demands sgl-kernel, torch 2.9.1


def kernel(installed: dict[str, Any], engine: str | None = "0.5.9", sm: int | None = 90) -> dict[str, Any]:
    found = kernel_facts(installed, requirements(engine), {"host.sm": sm} if sm else {})
    return {name.removeprefix("package.kernel."): value for name, value in found.items()}


@pytest.mark.parametrize(
    ("version", "torch"),
    [("0.3.9+cu124", (2, 8)), ("0.3.21", (2, 9)), ("0.4.4", (2, 11)), ("0.4.6", None), ("0.1.0", None), ("odd", None)],
)
def test_kernel_wheel_belongs_to_the_torch_of_its_neighbours(version: str, torch: tuple[int, int] | None) -> None:
    assert kernel_torch(version) == torch


@pytest.mark.parametrize(
    ("version", "major"), [("0.4.1", 12), ("0.4.2", 13), ("0.3.21+cu130", 13), ("0.4.2+cu129", 12), ("odd", None)]
)
def test_kernel_wheels_are_cuda_13_from_the_release_that_requires_it(version: str, major: int | None) -> None:
    assert kernel_cuda_major(version) == major


@pytest.mark.parametrize(
    ("engine", "installed", "name", "state"),
    [
        ("0.5.9", {"sgl-kernel": "0.3.21"}, "sgl-kernel", "ok"),
        ("0.5.9", {"sgl-kernel": "0.3.0"}, "sgl-kernel", "below"),
        ("0.5.9", {"sgl-kernel": None}, "sgl-kernel", "absent"),
        ("0.5.9", {}, "sgl-kernel", None),
        ("0.5.10", {"sgl-kernel": "0.3.21", "sglang-kernel": None}, "sglang-kernel", "former-name"),
        ("0.5.10", {"sglang-kernel": "9.9"}, "sglang-kernel", "ok"),
        (None, {"sgl-kernel": "0.3.21"}, "sgl-kernel", None),
    ],
)
def test_the_kernel_package_is_held_against_what_the_release_demands(
    engine: str | None, installed: dict[str, Any], name: str, state: str | None
) -> None:
    found = kernel(installed, engine)
    assert (found["name"], found.get("state")) == (name, state)


def test_patch_release_of_torch_is_no_abi_mismatch() -> None:
    for torch, differs in (("2.9.0+cu128", False), ("2.9.1", False), ("2.10.0+cu128", True)):
        found = kernel({"torch": torch, "sgl-kernel": "0.3.21"})
        assert (found["torch"], found["torch_differs"]) == ("2.9", differs)
    assert "torch_differs" not in kernel({"sgl-kernel": "0.3.21"})


@pytest.mark.parametrize(("torch", "differs"), [("2.9.1+cu128", False), ("2.9.1+cu130", True), ("2.9.1+cpu", None)])
def test_cuda_of_kernel_and_torch_are_compared_by_major(torch: str, differs: bool | None) -> None:
    found = kernel({"torch": torch, "sgl-kernel": "0.3.21"})
    assert (found["cuda_major"], found.get("cuda_major_differs")) == (12, differs)


@pytest.mark.parametrize(
    ("sm", "arches", "covered"),
    [
        (120, ["sm80", "sm90"], False),
        (120, ["sm_120a"], True),
        (120, ["sm_120"], True),
        (120, ["sm_121a"], False),
        (121, ["sm_120"], True),
        (121, ["sm_120a"], False),
        (89, ["sm80"], True),
        (80, ["sm89"], False),
        (103, ["sm_100f"], True),
        (90, ["odd"], False),
    ],
)
def test_machine_code_runs_on_its_own_major_at_or_above_its_minor(sm: int, arches: list[str], covered: bool) -> None:
    assert kernel({"sgl-kernel-arch-list": arches}, sm=sm)["covers_gpu"] is covered


@pytest.mark.parametrize(
    ("sm", "installed", "covered"),
    [
        (120, {"sgl-kernel": "0.3.9+cu124"}, False),
        (120, {"sgl-kernel": "0.3.9+cu128"}, True),
        (120, {"sgl-kernel": "0.3.9", "torch": "2.6.0+cu124"}, False),
        (100, {"sgl-kernel": "0.3.9", "torch": "2.8.0+cu128"}, True),
        (90, {"sgl-kernel": "0.3.9+cu118"}, None),
        (120, {"sgl-kernel": "0.3.9"}, None),
        (None, {"sgl-kernel": "0.3.9+cu124"}, None),
        (120, {"sgl-kernel": "0.3.9+cu128", "sgl-kernel-arch-list": ["sm90"]}, False),
        (120, {"sgl-kernel": "0.3.9+cu124", "sgl-kernel-arch-list": []}, False),
    ],
)
def test_without_a_list_the_cuda_of_the_wheel_tells_whether_it_knows_blackwell(
    sm: int | None, installed: dict[str, Any], covered: bool | None
) -> None:
    assert kernel(installed, sm=sm).get("covers_gpu") is covered


def test_wheel_without_code_for_the_gpu_is_one_fault_not_two() -> None:
    found = kernel({"torch": "2.6.0+cu124", "sgl-kernel": "0.3.0"}, sm=120)
    assert found["covers_gpu"] is False and "state" not in found
    assert kernel({"torch": "2.9.1+cu128", "sgl-kernel": "0.3.0"}, sm=120)["state"] == "below"


# --- Triton


@pytest.mark.parametrize(
    ("installed", "sm", "ptxas", "knows"),
    [
        ({"triton": "3.5.1"}, 103, 12.8, False),
        ({"triton": "3.6.0"}, 103, 12.9, True),
        ({"triton": "3.1.0"}, 120, 12.4, False),
        ({"triton": "3.1.0", "triton-bundled-ptxas": "12.9"}, 120, 12.9, True),
        ({"triton": "3.5.1"}, None, 12.8, None),
        ({"triton": "2.1.0"}, 90, None, None),
        ({}, 90, None, None),
    ],
)
def test_assembler_of_triton_is_known_by_its_release(
    installed: dict[str, Any], sm: int | None, ptxas: float | None, knows: bool | None
) -> None:
    found = triton_facts(installed, {"host.sm": sm})
    assert (found.get("package.triton.ptxas"), found.get("package.triton.ptxas_knows_gpu")) == (ptxas, knows)


# --- an untouched install


@pytest.mark.parametrize(
    ("engine", "sm", "wheels", "ptxas"),
    [("0.5.9", 90, True, True), ("0.5.9", 103, False, False), ("0.5.2", 120, True, True), ("0.5.11", 110, True, False)],
)
def test_what_a_release_installs_is_held_against_the_gpu(engine: str, sm: int, wheels: bool, ptxas: bool) -> None:
    found = default_facts({}, requirements(engine), {"host.sm": sm})
    assert found == {"launch.default_wheels_cover_gpu": wheels, "launch.default_ptxas_knows_gpu": ptxas}


@pytest.mark.parametrize(
    ("installed", "facts"),
    [
        ({"torch": "2.9.1"}, {"host.sm": 90}),
        ({"sgl-kernel": "0.3.21"}, {"host.sm": 90}),
        ({}, {}),
        ({}, {"host.sm": 70}),
    ],
)
def test_where_somebody_looked_or_the_gpu_is_unknown_nothing_is_assumed(
    installed: dict[str, Any], facts: dict[str, Any]
) -> None:
    assert default_facts(installed, RELEASE, facts) == {}
    assert default_facts({}, None, {"host.sm": 90}) == {}


def test_an_assembler_that_was_looked_at_is_not_assumed() -> None:
    assert "launch.default_ptxas_knows_gpu" not in default_facts({"triton": "3.5.1"}, RELEASE, {"host.sm": 103})
