"""Installed packages against the release, each other and the GPU; the tables against the engine files."""

from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from checks.engine.flag_schema import available, load
from checks.facts.derived import checkpoint_files, cuda, extend, packages
from checks.facts.derived.kernels import KERNELS, kernel_cuda_major, kernel_torch
from checks.facts.derived.tables import all_requirements, first_releases


def facts_of(engine: str = "0.5.10", **installed: Any) -> dict[str, Any]:
    named = {f"package.{name.replace('_', '-')}": version for name, version in installed.items()}
    return packages.derive({"engine.version": engine, "host.sm": 90, **named})


def test_requirements_table_agrees_with_every_engine_file() -> None:
    assert list(all_requirements()) == list(available())
    for release in available():
        stated = {
            (canonicalize_name(item.name), str(item.specifier)) for item in map(Requirement, load(release).requirements)
        }
        assert all_requirements()[release].requires.items() <= stated, release


def test_every_release_demands_a_kernel_and_a_flashinfer() -> None:
    for release, item in all_requirements().items():
        assert "flashinfer-python" in item.minimum and item.minimum.keys() & set(KERNELS), release


def test_architecture_table_agrees_with_every_engine_file() -> None:
    seen: set[str] = set()
    for release in available():
        named = {name for name in load(release).architectures if not name.startswith("Transformers")}
        assert {name for name, first in first_releases().items() if first == release} == named - seen, release
        seen |= named


@pytest.mark.parametrize(
    ("driver", "highest"), [("570.195.03", 12.8), ("580.95.05", 13.0), ("535.54.03", 12.2), ("390.1", None)]
)
def test_driver_branch_tells_the_highest_cuda(driver: str, highest: float | None) -> None:
    assert cuda.of_driver(driver) == highest


@pytest.mark.parametrize(
    ("version", "built"),
    [("2.11.0+cu130", 13.0), ("2.9.1+cu126", 12.6), ("2.9.1", 12.8), ("2.9.1+cpu", None), ("2.9.1+rocm6.4", None)],
)
def test_torch_wheel_tells_its_cuda(version: str, built: float | None) -> None:
    assert cuda.of_torch(version) == built


@pytest.mark.parametrize(
    ("kernel", "torch"),
    [("0.3.9+cu124", (2, 8)), ("0.3.21", (2, 9)), ("0.4.4", (2, 11)), ("0.4.6", None), ("0.1.0", None)],
)
def test_kernel_wheel_belongs_to_the_torch_of_its_neighbours(kernel: str, torch: tuple[int, int] | None) -> None:
    assert kernel_torch(kernel) == torch


def test_kernel_wheels_are_cuda_13_from_the_release_that_requires_it() -> None:
    assert [kernel_cuda_major(version) for version in ("0.4.1", "0.4.2", "0.3.21+cu130")] == [12, 13, 13]


def test_former_name_of_the_kernel_package_counts_as_former_name() -> None:
    found = facts_of("0.5.10", sgl_kernel="0.3.21", sglang_kernel=None)
    assert found["package.kernel.state"] == "former-name"


def test_patch_release_of_torch_is_no_abi_mismatch() -> None:
    assert facts_of("0.5.9", torch="2.9.0+cu128", sgl_kernel="0.3.21")["package.kernel.torch_differs"] is False
    assert facts_of("0.5.9", torch="2.10.0+cu128", sgl_kernel="0.3.21")["package.kernel.torch_differs"] is True


def test_wheel_without_code_for_the_gpu_is_one_fault_not_two() -> None:
    found = packages.derive(
        {"engine.version": "0.5.2", "host.sm": 120, "package.torch": "2.6.0+cu124", "package.sgl-kernel": "0.3.9+cu124"}
    )
    assert found["package.kernel.covers_gpu"] is False
    assert "package.kernel.state" not in found


@pytest.mark.parametrize(
    ("arches", "covered"), [(["sm80", "sm90"], False), (["sm_120a"], True), (["sm_120"], True), (["sm_121a"], False)]
)
def test_arch_list_decides_over_the_cuda_of_the_wheel(arches: list[str], covered: bool) -> None:
    found = packages.derive({"engine.version": "0.5.9", "host.sm": 120, "package.sgl-kernel-arch-list": arches})
    assert found["package.kernel.covers_gpu"] is covered


def test_older_minor_of_one_major_runs_on_a_newer_card_of_it() -> None:
    found = packages.derive({"engine.version": "0.5.9", "host.sm": 89, "package.sgl-kernel-arch-list": ["sm80"]})
    assert found["package.kernel.covers_gpu"] is True


def test_flashinfer_versions_are_compared_without_their_local_part() -> None:
    same = facts_of(flashinfer_python="0.6.7.post2", flashinfer_jit_cache="0.6.7.post2+cu129")
    other = facts_of(flashinfer_python="0.6.7.post2", flashinfer_cubin="0.6.7")
    assert (same["package.flashinfer.differ"], other["package.flashinfer.differ"]) == (False, True)


@pytest.mark.parametrize(
    ("engine", "installed", "relation", "far"),
    [
        ("0.5.9", "4.57.6", "same", False),
        ("0.5.11", "5.12.1", "newer", True),
        ("0.5.11", "5.8.0", "newer", False),
        ("0.5.10", "4.57.1", "older", False),
    ],
)
def test_transformers_relation_ignores_patch_releases(engine: str, installed: str, relation: str, far: bool) -> None:
    found = facts_of(engine, transformers=installed)
    assert (found["package.transformers.relation"], found["package.transformers.far_newer"]) == (relation, far)


def test_cudnn_number_is_that_of_cudnn_itself() -> None:
    assert facts_of(nvidia_cudnn_cu12="9.10.2.21")["package.cudnn.number"] == 91002
    assert facts_of(torch="2.9.1")["package.cudnn.seen"] is False


def test_assembler_of_triton_is_known_by_its_release() -> None:
    b300 = {"engine.version": "0.5.9", "host.sm": 103}
    assert packages.derive({**b300, "package.triton": "3.5.1"})["package.triton.ptxas_knows_gpu"] is False
    assert packages.derive({**b300, "package.triton": "3.6.0"})["package.triton.ptxas_knows_gpu"] is True
    assert packages.derive(b300)["launch.default_ptxas_knows_gpu"] is False


def test_nothing_is_said_about_packages_on_other_platforms() -> None:
    assert packages.derive({"engine.version": "0.5.9", "host.platform": "rocm", "package.sgl-kernel": None}) == {}


def test_architecture_of_a_later_release_is_unknown_to_an_earlier_one() -> None:
    facts = {"model.architectures": ["DeepseekV4ForCausalLM"]}
    early = checkpoint_files.derive({**facts, "engine.version": "0.5.11"})
    between = checkpoint_files.derive({**facts, "engine.version": "0.5.12.dev77+g1a2b3c4"})
    assert early["model.architecture_known"] is False
    assert "model.architecture_known" not in between  # a build on the way to 0.5.12 may have it
    assert checkpoint_files.derive({**facts, "engine.version": "0.5.12"})["model.architecture_known"] is True


@pytest.mark.parametrize(
    ("shard", "bad"),
    [
        ({"name": "a.safetensors", "bytes": 10, "expected_bytes": 20}, 1),
        ({"name": "a.safetensors", "bytes": 134}, 1),
        ({"name": "a.safetensors", "bytes": 5_000_000}, 0),
        ("a.safetensors", 0),
    ],
)
def test_short_shards_and_pointers_are_counted(shard: object, bad: int) -> None:
    assert checkpoint_files.derive({"model.weight_files": [shard]})["model.bad_shards"] == bad


def test_folder_without_config_is_told_from_a_folder_nobody_looked_into() -> None:
    assert checkpoint_files.derive({"model.files": []})["model.config_missing"] is True
    assert "model.config_missing" not in checkpoint_files.derive({"model.path_exists": True})


def test_given_facts_are_never_replaced() -> None:
    facts = extend({"engine.version": "0.5.9", "package.torch": "2.9.1+cu128", "package.torch.cuda": 13.0})
    assert facts["package.torch.cuda"] == 13.0


def test_the_pins_of_the_release_are_known_though_nobody_looked_at_the_host() -> None:
    found = packages.derive({"engine.version": "0.5.10"})
    assert found["package.torch.pin"] == "2.9.1" and found["package.transformers.pin"] == "5.3.0"
    assert found["package.kernel.pin"] == "0.4.1" and found["package.flashinfer.pin"] == "0.6.7.post2"
    assert packages.derive({"engine.version": "0.5.9"})["package.kernel.pin"] == "0.3.21"
    assert "package.torch.pin" not in packages.derive({})
