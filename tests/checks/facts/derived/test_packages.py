"""Installed packages against the release and each other; kernel and Triton wheels are judged on the way."""

from typing import Any

import pytest

from checks.engine.releases import available
from checks.facts.derived import extend, packages
from checks.facts.derived.tables import all_requirements


def facts_of(engine: str = "0.5.10", **installed: Any) -> dict[str, Any]:
    named = {f"package.{name.replace('_', '-')}": version for name, version in installed.items()}
    return packages.derive({"engine.version": engine, "host.sm": 90, **named})


@pytest.mark.parametrize("release", available())
def test_what_a_release_pins_is_met_by_exactly_that(release: str) -> None:
    """Post releases too (`==0.1.2.post1`), which a range of engine releases would cut off."""
    required = all_requirements()[release].requires
    pinned = {name: text.removeprefix("==") for name, text in required.items() if text.startswith("==")}
    unmet = facts_of(release, **pinned).get("package.requirements_unmet", "")
    assert [name for name in pinned if f"{name}==" in unmet] == []


def test_another_version_than_the_pinned_one_is_named() -> None:
    facts = facts_of("0.5.23", **{"sgl-deep-ep": "0.1.2"})
    assert "sgl-deep-ep==0.1.2.post1 (0.1.2 is)" in facts["package.requirements_unmet"]


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


def test_kernel_and_triton_wheels_are_judged_with_the_other_packages() -> None:
    assert facts_of("0.5.10", sgl_kernel="0.3.21", sglang_kernel=None)["package.kernel.state"] == "former-name"
    b300 = {"engine.version": "0.5.9", "host.sm": 103}
    assert packages.derive({**b300, "package.triton": "3.5.1"})["package.triton.ptxas_knows_gpu"] is False
    assert packages.derive({**b300, "package.triton": "3.6.0"})["package.triton.ptxas_knows_gpu"] is True
    assert packages.derive(b300)["launch.default_ptxas_knows_gpu"] is False


def test_nothing_is_said_about_packages_on_other_platforms() -> None:
    assert packages.derive({"engine.version": "0.5.9", "host.platform": "rocm", "package.sgl-kernel": None}) == {}


def test_given_facts_are_never_replaced() -> None:
    facts = extend({"engine.version": "0.5.9", "package.torch": "2.9.1+cu128", "package.torch.cuda": 13.0})
    assert facts["package.torch.cuda"] == 13.0


def test_the_pins_of_the_release_are_known_though_nobody_looked_at_the_host() -> None:
    found = packages.derive({"engine.version": "0.5.10"})
    assert found["package.torch.pin"] == "2.9.1" and found["package.transformers.pin"] == "5.3.0"
    assert found["package.kernel.pin"] == "0.4.1" and found["package.flashinfer.pin"] == "0.6.7.post2"
    assert packages.derive({"engine.version": "0.5.9"})["package.kernel.pin"] == "0.3.21"
    assert "package.torch.pin" not in packages.derive({})
