"""The rulebook's incremental evaluation returns exactly the findings of a full evaluation, in any order of launches."""

from __future__ import annotations

import random
from typing import Any

import pytest

from checks.before.rules import check
from checks.engine.flag_schema import available
from checks.facts.launch_evidence import Launch
from checks.vocabulary import FlagValue
from launcher.gate.rulebook import Rulebook
from launcher.knowledge_cache import rules

FLAGS: dict[str, tuple[FlagValue, ...]] = {
    "tp-size": ("2", "8"), "speculative-algorithm": ("NEXTN", "EAGLE", "NGRAM"),
    "speculative-eagle-topk": ("1", "4"),
    "speculative-num-steps": ("3",), "speculative-num-draft-tokens": ("2", "4"),
    "quantization": ("modelopt_fp4", "fp8"),
    "moe-runner-backend": ("flashinfer_trtllm", "flashinfer_cutedsl"), "attention-backend": ("fa3", "triton"),
    "disable-radix-cache": (True,), "enable-dp-attention": (True,), "dp-size": ("2",), "page-size": ("1", "64"),
    "kv-cache-dtype": ("fp8_e5m2",), "mem-fraction-static": ("0.99", "0.5"), "no-such-flag": ("1",),
}  # fmt: skip
GPUS: list[dict[str, Any]] = [
    {},
    {"name": "RTX PRO 6000", "sm": 120, "count": 8},
    {"name": "H100", "sm": 90, "count": 2},
    {"platform": "cpu"},
]
MODELS: list[dict[str, Any]] = [
    {},
    {"name": "nvidia/Qwen3.5-397B-A17B-NVFP4"},
    {"name": "deepseek-ai/DeepSeek-V3", "scale_fmt": "ue8m0"},
]


def any_launch(rng: random.Random) -> Launch:
    chosen = rng.sample(sorted(FLAGS), rng.randint(0, 6))
    return Launch(
        engine=rng.choice([None, "0.5.10.dev1", *available()[-12:]]),
        flags={"model-path": "/m", **{name: rng.choice(FLAGS[name]) for name in chosen}},
        env=rng.choice([{}, {"SGLANG_ENABLE_SPEC_V2": "1"}]),
        gpu=rng.choice(GPUS),
        model=rng.choice(MODELS),
    )


@pytest.mark.parametrize("seed", range(4))
def test_incremental_and_full_evaluation_agree(seed: int) -> None:
    rng = random.Random(seed)
    launches = [any_launch(rng) for _ in range(60)]
    loaded = rules()
    for launch, findings in zip(launches, Rulebook(loaded).findings(launches), strict=True):
        expected = {(item.id, item.subject, item.message, item.severity) for item in check(launch, loaded)}
        assert expected <= {(item.id, item.subject, item.message, item.severity) for item in findings}
        assert {(item.id, item.subject) for item in findings} == {(name, subject) for name, subject, _, _ in expected}
