"""A plan for an observation: it fits the launch, its order is fixed, and every step exists in the release."""

from __future__ import annotations

from typing import Any

import pytest

from checks.engine.flag_schema import load
from checks.engine.releases import available
from checks.suspects.plan import KINDS, MOST, group_of, plan, understood


def changes(kind: str, engine: str = "0.5.11", **flags: Any) -> list[dict[str, Any]]:
    facts = {f"flag.{name.replace('_', '-')}": value for name, value in flags.items()}
    steps = plan(facts, load(engine), kind)
    return [{**step.change.set, **dict.fromkeys(step.change.unset), **step.change.env} for step in steps]


def test_a_feature_of_the_launch_is_left_out_before_the_engine_is_slowed_down() -> None:
    assert changes("garbled", speculative_algorithm="EAGLE")[:3] == [
        {"speculative-algorithm": None},
        {"disable-overlap-schedule": True},
        {"disable-radix-cache": True},
    ]


def test_what_is_switched_off_already_is_not_tried() -> None:
    off = changes("garbled", disable_radix_cache=True, disable_overlap_schedule=True, attention_backend="triton")
    assert off[:2] == [{"disable-cuda-graph": True}, {"attention-backend": None}]


def test_a_hang_over_nodes_asks_the_library_what_it_waits_for() -> None:
    assert {"NCCL_DEBUG": "INFO"} in changes("hang", nnodes="2", disable_overlap_schedule=True, disable_cuda_graph=True)


def test_slowness_questions_what_slows_the_engine_down() -> None:
    assert {"disable-cuda-graph": None} in changes("slow", disable_cuda_graph=True)
    assert {"disable-cuda-graph": True} not in changes("slow")


@pytest.mark.parametrize("kind", [kind for kinds in KINDS.values() for kind in kinds])
@pytest.mark.parametrize("engine", [available()[0], available()[-1]])
def test_each_known_kind_has_a_plan_that_the_release_accepts(kind: str, engine: str) -> None:
    features = {
        "speculative-algorithm": "EAGLE", "tool-call-parser": "qwen", "reasoning-parser": "qwen3", "chat-template": "x",
        "attention-backend": "flashinfer",
    }  # fmt: skip
    schema = load(engine)
    steps = plan({f"flag.{name}": value for name, value in features.items()}, schema, kind)
    assert 1 <= len(steps) <= MOST
    assert all(name in schema.by_name for step in steps for name in (*step.change.set, *step.change.unset))


def test_an_unknown_kind_gets_the_plan_for_a_crash() -> None:
    assert not understood("purple")
    assert group_of("purple") == ""
    assert changes("purple", speculative_algorithm="EAGLE") == changes("crash", speculative_algorithm="EAGLE")


def test_on_a_cpu_nothing_is_tried_that_only_a_gpu_has() -> None:
    names = {name for change in changes("garbled", device="cpu", attention_backend="torch_native") for name in change}
    assert names == {"disable-overlap-schedule", "disable-radix-cache"}


def test_an_override_of_the_model_is_questioned_first() -> None:
    assert changes("garbled", json_model_override_args="{}")[0] == {"json-model-override-args": None}


def test_a_crash_is_not_the_doing_of_a_feature_that_runs_later() -> None:
    facts = {"flag.model-path": "/m", "flag.quantization": "fp8"}
    early = plan(facts, load("0.5.11"), "crash", "args")
    assert all("disable-cuda-graph" not in step.change.set for step in early)
    assert any("disable-cuda-graph" in step.change.set for step in plan(facts, load("0.5.11"), "crash", "serving"))


def test_a_feature_that_the_message_depends_on_comes_first() -> None:
    steps = plan({"flag.model-path": "/m"}, load("0.5.11"), "crash", "", "hipErrorStreamCaptureInvalidated")
    assert steps[0].change.set == {"disable-cuda-graph": True}
