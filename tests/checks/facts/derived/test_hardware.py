"""Facts read off the names of GPUs, and the traits of a generation."""

from __future__ import annotations

import pytest

from checks.facts.derived import hardware


@pytest.mark.parametrize(
    ("name", "sm"),
    [
        ("NVIDIA H100 80GB HBM3", 90),
        ("NVIDIA H200", 90),
        ("NVIDIA B200", 100),
        ("NVIDIA GB300", 103),
        ("NVIDIA GB10", 121),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 120),
        ("NVIDIA GeForce RTX 5090", 120),
        ("NVIDIA GeForce RTX 3090", 86),
        ("NVIDIA L40S", 89),
        ("NVIDIA L4", 89),
        ("NVIDIA A100-SXM4-80GB", 80),
        ("NVIDIA A10G", 86),
        ("Tesla T4", 75),
        ("Tesla V100-SXM2-32GB", 70),
    ],
)
def test_compute_capability_comes_from_the_name(name: str, sm: int) -> None:
    assert hardware.derive({"host.gpu_name": name})["host.sm"] == sm


def test_a_measured_value_is_not_replaced() -> None:
    assert "host.sm" not in hardware.derive({"host.gpu_name": "NVIDIA H100", "host.sm": 89})


def test_sm12x_is_blackwell_but_not_of_the_data_centre() -> None:
    facts = hardware.derive({"host.gpu_name": "RTX PRO 6000 Blackwell"})
    assert facts["host.blackwell"] and facts["host.sm12x"] and not facts["host.blackwell_datacenter"]


def test_an_amd_card_has_a_platform_and_no_cuda_traits() -> None:
    facts = hardware.derive({"host.gpu_name": "AMD Instinct MI300X", "host.platform": "cuda"})
    assert facts["host.platform"] == "rocm"
    assert "host.fp8_hardware" not in facts and "host.cuda_sm" not in facts


def test_an_unknown_card_yields_nothing() -> None:
    known = hardware.derive({"host.gpu_name": "Voodoo 2"})
    assert known == {"launch.platform_plugin": False, "host.gpu_slice": False}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"host.gpu_name": "NVIDIA A100-SXM4-80GB MIG 1g.10gb"}, True),
        ({"host.gpu_name": "H100", "env.CUDA_VISIBLE_DEVICES": "MIG-aa5c-1"}, True),
        ({"host.gpu_name": "H100 80GB HBM3", "env.CUDA_VISIBLE_DEVICES": "0,1"}, False),
        ({}, False),
    ],
)
def test_a_slice_is_known_by_its_name_or_identifier(facts: dict[str, str], expected: bool) -> None:
    assert hardware.derive(facts).get("host.gpu_slice") is expected
