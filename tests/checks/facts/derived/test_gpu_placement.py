"""The ranks of a node against the GPUs that a process sees."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.derived import extend


@pytest.mark.parametrize(
    ("facts", "missing"),
    [
        ({"flag.tp-size": 2, "host.gpus_visible": 1}, 1),
        ({"flag.tp-size": 4, "flag.pp-size": 2, "host.gpus_visible": 4}, 4),
        ({"flag.tp-size": 2, "flag.dp-size": 2, "host.gpus_visible": 2}, 2),
        ({"flag.tp-size": 8, "flag.dp-size": 8, "flag.enable-dp-attention": True, "host.gpus_visible": 8}, 0),
        ({"flag.tp-size": 16, "flag.nnodes": 2, "host.gpus_visible": 8}, 0),
        ({"flag.base-gpu-id": 1, "host.gpus_visible": 1}, 1),
        ({"flag.tp-size": 4, "flag.gpu-id-step": 2, "host.gpus_visible": 6}, 1),
        ({"flag.tp-size": 2, "host.gpus_visible": 8, "env.CUDA_VISIBLE_DEVICES": "3,"}, 1),
        ({"flag.tp-size": 2, "host.gpu_count": 7, "host.gpu_name": "A100 MIG 1g.10gb"}, 1),
        ({"flag.tp-size": 2, "host.gpu_count": 4}, 0),
        ({"host.gpus_visible": 2, "host.gpu_ids": ["GPU-aa", "GPU-bb"], "env.CUDA_VISIBLE_DEVICES": "GPU-0000"}, 1),
        ({"host.gpus_visible": 2, "host.gpu_ids": ["GPU-aa", "GPU-bb"], "env.CUDA_VISIBLE_DEVICES": "GPU-b"}, 0),
        ({"host.gpus_visible": 2, "host.gpu_ids": ["GPU-aa"], "env.CUDA_VISIBLE_DEVICES": "MIG-x"}, 0),
        ({"host.gpus_visible": 2, "env.CUDA_VISIBLE_DEVICES": "GPU-0000"}, 0),
    ],
)
def test_missing_gpus(facts: dict[str, Any], missing: int) -> None:
    assert extend(facts)["launch.gpus_missing"] == missing


@pytest.mark.parametrize(
    "facts",
    [
        {"flag.tp-size": 2},
        {"flag.tp-size": "two", "host.gpus_visible": 1},
        {"flag.tp-size": 2, "flag.device": "cpu", "host.gpus_visible": 1},
        {"flag.tp-size": 2, "host.platform": "rocm", "host.gpus_visible": 1},
    ],
)
def test_without_both_counts_nothing_is_said(facts: dict[str, Any]) -> None:
    assert "launch.gpus_missing" not in extend(facts)
