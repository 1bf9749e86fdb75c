"""What the stand-in server says of itself: /server_info, /v1/models, /metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def server_info(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return /server_info of a small server without optional features; `overrides` replaces fields."""
    running = overrides.get("max_running_requests", 8)
    info = {
        "model_path": "/models/smol", "served_model_name": "smol", "version": "0.5.23", "dp_size": 1, "tp_size": 1,
        "page_size": 1, "chunked_prefill_size": 512, "context_length": 4096, "max_req_input_len": 4090,
        "max_total_num_tokens": 32768, "max_running_requests": running, "disable_radix_cache": False,
        "speculative_algorithm": None, "speculative_num_steps": None, "speculative_num_draft_tokens": None,
        "tool_call_parser": None, "reasoning_parser": None, "lora_paths": None, "is_embedding": False,
        "cuda_graph_bs": [1, 2, 4, 8], "device": "cuda", "enable_metrics": False,
        "internal_states": [{"effective_max_running_requests_per_dp": running}],
    }  # fmt: skip
    return info | dict(overrides)


def metrics(info: Mapping[str, Any]) -> str:
    """Return the lines of /metrics that probes read."""
    labels = '{engine_type="unified",model_name="smol",tp_rank="0"}'
    return (
        "# HELP sglang:spec_accept_length The average acceptance length of speculative decoding.\n"
        "# TYPE sglang:spec_accept_length gauge\n"
        f"sglang:spec_accept_length{labels} {info.get('accept_length', 2.5)}\n"
        f"sglang:spec_accept_rate{labels} 0.5\n"
    )


def models(info: Mapping[str, Any], faults: frozenset[str]) -> dict[str, Any]:
    """Return the body of /v1/models."""
    name = "another-model" if "wrong-model" in faults else info["served_model_name"]
    data = [] if "no-models" in faults else [{"id": name, "object": "model", "max_model_len": info["context_length"]}]
    return {"object": "list", "data": data}
