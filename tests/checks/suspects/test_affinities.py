"""What the steps of an engine depend on."""

from __future__ import annotations

import pytest

from checks.suspects.affinities import affinity


@pytest.mark.parametrize(
    ("function", "fact"),
    [
        ("weight_loader", "flag.json-model-override-args"),
        ("VocabParallelEmbedding.weight_loader", "flag.model-path"),
        ("load_weights", "flag.tp-size"),
        ("from_pretrained", "flag.model-path"),
        ("init_torch_distributed", "flag.dist-init-addr"),
        ("init_memory_pool", "flag.mem-fraction-static"),
        ("capture_one_batch_size", "flag.enable-torch-compile"),
    ],
)
def test_the_outcome_of_a_step_depends_on_its_settings(function: str, fact: str) -> None:
    assert affinity(function, fact) > 1


@pytest.mark.parametrize(
    ("function", "fact"),
    [("weight_loader", "flag.port"), ("frobnicate", "flag.tp-size"), ("recapture", "flag.tp-size"), ("", "")],
)
def test_other_functions_and_settings_have_none(function: str, fact: str) -> None:
    assert affinity(function, fact) == 0
