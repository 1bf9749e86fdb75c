"""The server in its own words, of every release; what the profile expects; the baseline."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from checks.after.probes.context import Context, Server, parse_baseline, parse_server
from checks.after.probes.expect import NO_EXPECTATIONS
from checks.after.probes.expectations import parse_expect


@pytest.mark.parametrize(
    ("info", "field", "value"),
    [
        ({"served_model_name": "smol", "model_path": "/m"}, "model", "smol"),
        ({"model_path": "/m"}, "model", "/m"),
        ({"version": "0.5.10"}, "version", "0.5.10"),
        ({"is_embedding": True}, "generates", False),
        ({"max_running_requests": 32}, "running", 32),
        ({"max_running_requests": 32, "dp_size": 4}, "running", 32),
        ({"internal_states": [{"effective_max_running_requests_per_dp": 8}], "dp_size": 4}, "running", 32),
        ({"internal_states": [{}], "max_running_requests": 32}, "running", 32),
        ({"internal_states": "odd", "max_running_requests": None}, "running", None),
        ({"dp_size": 4}, "ranks", 4),
        ({"max_req_input_len": 8185, "context_length": 8192}, "context", 8185),
        ({"context_length": 8192}, "context", 8192),
        ({"context_length": None}, "context", None),
        ({"chunked_prefill_size": 4096}, "chunk", 4096),
        ({"chunked_prefill_size": -1}, "chunk", None),
        ({"page_size": 64}, "page", 64),
        ({"page_size": None}, "page", 1),
        ({"disable_radix_cache": True}, "radix_cache", False),
        ({"cuda_graph_bs": [4, 1, 2]}, "graph_sizes", (1, 2, 4)),
        ({"cuda_graph_bs_decode": [8]}, "graph_sizes", (8,)),
        (
            {"cuda_graph_config": {"decode": {"backend": "full", "bs": [1, 2]}}, "cuda_graph_bs": [9]},
            "graph_sizes",
            (1, 2),
        ),
        ({"cuda_graph_config": {"decode": {"backend": "disabled"}}, "cuda_graph_bs": [9]}, "graph_sizes", ()),
        ({"cuda_graph_bs": [1], "disable_cuda_graph": True}, "graph_sizes", ()),
        ({"cuda_graph_bs": [1], "device": "cpu"}, "graph_sizes", ()),
        ({"cuda_graph_bs": None}, "graph_sizes", ()),
        ({"tool_call_parser": "qwen25"}, "tool_parser", "qwen25"),
        ({"reasoning_parser": None}, "reasoning_parser", ""),
        ({"lora_paths": {"a": "/a", "b": "/b"}}, "adapters", ("a", "b")),
        ({"lora_paths": ["a=/a", "/b"]}, "adapters", ("a", "/b")),
        ({"lora_paths": [{"lora_name": "a", "lora_path": "/a"}]}, "adapters", ("a",)),
        ({"lora_paths": None}, "adapters", ()),
        ({"speculative_algorithm": "EAGLE", "speculative_num_steps": 3}, "spec_steps", 3),
        ({"speculative_algorithm": "EAGLE", "speculative_num_draft_tokens": 4}, "spec_drafts", 4),
        ({"speculative_algorithm": None, "speculative_num_steps": 3}, "spec_steps", None),
        ({"enable_metrics": True}, "metrics", True),
    ],
)
def test_a_server_describes_itself(info: dict[str, Any], field: str, value: object) -> None:
    server = parse_server(info)
    assert getattr(server, field) == value
    assert server.info == info


def test_a_server_that_tells_nothing_is_taken_for_an_ordinary_one() -> None:
    server = parse_server({})
    assert (server.model, server.generates, server.running, server.ranks, server.page) == ("", True, None, 1, 1)
    assert (server.context, server.chunk, server.radix_cache, server.metrics) == (None, None, True, False)


def test_true_is_no_number() -> None:
    assert parse_server({"context_length": True, "page_size": True}) == Server(
        info={"context_length": True, "page_size": True}
    )


# --- what the profile expects


@pytest.mark.parametrize(
    ("expect", "server", "model"),
    [({"model": "mine"}, "smol", "mine"), ({}, "smol", "smol"), ({}, "", "default")],
)
def test_requests_name_the_expected_model(expect: dict[str, Any], server: str, model: str) -> None:
    assert Context(server=Server(model=server), expect=parse_expect(expect)).model == model


@pytest.mark.parametrize(
    ("running", "wished", "allowed"),
    [
        (None, None, 8),
        (4, None, 4),
        (1000, None, 64),
        (1000, 16, 16),
        (4, 16, 4),
        (1000, 100, 64),
        (1000, 0, 64),
        (0, None, 8),
    ],
)
def test_no_more_requests_are_in_flight_than_the_server_decodes(
    running: int | None, wished: int | None, allowed: int
) -> None:
    assert (
        Context(server=Server(running=running), expect=replace(NO_EXPECTATIONS, concurrency=wished)).concurrency
        == allowed
    )


@pytest.mark.parametrize(
    ("suite", "expect", "seconds"),
    [("smoke", {}, 30), ("soak", {}, 30), ("standard", {}, 120), ("full", {}, 120), ("smoke", {"timeout": 5}, 5)],
)
def test_the_patience_with_a_request_depends_on_the_suite(suite: str, expect: dict[str, Any], seconds: float) -> None:
    assert Context(server=Server(), suite=suite, expect=parse_expect(expect)).timeout == seconds


# --- the baseline


def test_a_stored_validation_becomes_a_baseline() -> None:
    stored = {
        "verdicts": [{"id": "needle", "figures": {"found": 3}}, {"id": "health"}, {"message": "without an id"}],
        "samples": {"speed": {"decode": [100, 101.5]}},
    }
    baseline = parse_baseline(stored)
    assert baseline is not None
    assert baseline.figures == {"needle": {"found": 3}, "health": {}}
    context = Context(server=Server(), baseline=baseline)
    assert context.samples("speed", "decode") == (100.0, 101.5)
    assert context.samples("speed", "first") == context.samples("other", "decode") == ()


@pytest.mark.parametrize("nothing", [None, {}])
def test_without_a_stored_validation_there_is_no_baseline(nothing: dict[str, Any] | None) -> None:
    assert parse_baseline(nothing) is None
    assert Context(server=Server()).samples("speed", "decode") == ()
    assert parse_baseline({"suite": "smoke"}) is not None
