"""Prefill graphs: the backend that each release takes, what switches them off, and buckets beyond the context."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.derived.graphs import derive

PIECEWISE, BREAKABLE, OFF = "tc_piecewise", "breakable", "disabled"


def backend(engine: str, **facts: Any) -> str:
    named = {name.replace("__", ".").replace("_", "-"): value for name, value in facts.items()}
    return str(derive({"engine.version": engine, **named})["launch.prefill_graph"])


@pytest.mark.parametrize(
    ("engine", "facts", "taken"),
    [
        ("0.5.3", {"flag__enable_piecewise_cuda_graph": True}, OFF),
        ("0.5.9", {}, OFF),
        ("0.5.9", {"flag__enable_piecewise_cuda_graph": True}, PIECEWISE),
        ("0.5.10", {}, PIECEWISE),
        ("0.5.14", {}, PIECEWISE),
        ("0.5.15", {}, BREAKABLE),
        ("0.5.10", {"flag__disable_piecewise_cuda_graph": True}, OFF),
        ("0.5.10", {"flag__disable_cuda_graph": True}, OFF),
        ("0.5.10", {"flag__enable_breakable_cuda_graph": True}, BREAKABLE),
        ("0.5.9", {"flag__enforce_piecewise_cuda_graph": True}, PIECEWISE),
        ("0.5.20", {"flag__cuda_graph_backend_prefill": "disabled"}, OFF),
        ("0.5.20", {"flag__cuda_graph_backend_prefill": "full", "flag__disable_cuda_graph": True}, "full"),
    ],
)
def test_prefill_graphs_are_opt_in_then_default_then_breakable(engine: str, facts: dict[str, Any], taken: str) -> None:
    assert backend(engine, **facts) == taken


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("flag.enable-torch-compile", True),
        ("flag.enable-lora", True),
        ("flag.lora-paths", ["a"]),
        ("flag.enable-hierarchical-cache", True),
        ("flag.enable-symm-mem", True),
        ("flag.moe-a2a-backend", "deepep"),
        ("flag.disaggregation-mode", "decode"),
        ("launch.dp_attention", True),
        ("launch.pp_size", 2),
        ("host.platform", "rocm"),
    ],
)
def test_a_release_gives_up_its_default_graphs_by_itself(name: str, value: object) -> None:
    for engine in ("0.5.10", "0.5.16"):
        assert derive({"engine.version": engine, name: value})["launch.prefill_graph"] == OFF
    forced = {"engine.version": "0.5.10", name: value, "flag.enforce-piecewise-cuda-graph": True}
    assert derive(forced)["launch.prefill_graph"] == PIECEWISE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("flag.moe-a2a-backend", "none"),
        ("flag.disaggregation-mode", "null"),
        ("launch.pp_size", 1),
        ("flag.enable-lora", False),
    ],
)
def test_a_setting_at_its_default_switches_nothing_off(name: str, value: object) -> None:
    assert derive({"engine.version": "0.5.10", name: value})["launch.prefill_graph"] == PIECEWISE


@pytest.mark.parametrize(
    ("engine", "taken"), [("0.5.10", OFF), ("0.5.13", OFF), ("0.5.14", PIECEWISE), ("0.5.16", BREAKABLE)]
)
def test_speculation_switches_graphs_off_until_0_5_14(engine: str, taken: str) -> None:
    assert derive({"engine.version": engine, "launch.speculative": True})["launch.prefill_graph"] == taken


def test_without_a_release_nothing_is_said() -> None:
    assert derive({"flag.cuda-graph-backend-prefill": "full"}) == {}


@pytest.mark.parametrize(
    ("flags", "over"),
    [
        ({"context-length": "1024"}, True),
        ({"context-length": "2048"}, False),
        ({"context-length": "4096", "chunked-prefill-size": "8192"}, True),
        ({"context-length": "4096", "chunked-prefill-size": "4096"}, False),
        ({"context-length": "1024", "chunked-prefill-size": "-1"}, True),
        ({"context-length": "4096", "chunked-prefill-size": "8192", "cuda-graph-max-bs-prefill": "2k"}, False),
        ({"context-length": "1024", "disable-cuda-graph": True}, False),
    ],
)
def test_the_largest_bucket_must_fit_the_context(flags: dict[str, Any], over: bool) -> None:
    found = derive({"engine.version": "0.5.10", **{f"flag.{name}": value for name, value in flags.items()}})
    assert found["launch.prefill_graph_over_context"] is over


def test_without_a_stated_context_nothing_is_said_of_it() -> None:
    assert "launch.prefill_graph_over_context" not in derive({"engine.version": "0.5.10"})


@pytest.mark.parametrize(
    ("batches", "below"), [(["-1", "2"], True), (["0"], True), ("1 2 4", False), (["8"], False), (None, None)]
)
def test_a_batch_that_cannot_be_captured(batches: Any, below: bool | None) -> None:
    assert derive({"flag.cuda-graph-bs-decode": batches}).get("launch.graph_batch_below_one") is below
