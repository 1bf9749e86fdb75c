"""The routes on which a server tells about itself: models, settings, loads and metrics."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.serving.calls import Call, Refusal, Reply

if TYPE_CHECKING:
    from tests.serving.state import State


def models(state: State, call: Call) -> Reply:
    """Answer /v1/models."""
    options = state.options
    names = [options.name, *options.also_listed, *(f"{adapter}" for adapter in options.adapters)]
    data = [
        {
            "id": name,
            "object": "model",
            "created": int(state.started),
            "owned_by": "sglang",
            "root": options.name,
            "parent": options.name if name in options.adapters else None,
            "max_model_len": options.context if name not in options.adapters else None,
        }
        for name in names
    ]
    wanted = call.path.removeprefix("/v1/models").strip("/")
    if wanted and wanted not in names:
        raise Refusal(f"The model '{wanted}' does not exist", 404)
    told = state.faults("about", {"object": "list", "data": data}, state.at(call, "models"))
    return Reply(next(entry for entry in told["data"] if entry["id"] == wanted) if wanted else told)


def model_info(state: State, call: Call) -> Reply:
    """Answer /model_info and its old name."""
    options = state.options
    told: dict[str, Any] = {
        "model_path": options.name,
        "tokenizer_path": options.name,
        "is_generation": options.kind == "generate",
        "preferred_sampling_params": None,
    }
    if not options.release.startswith("0.4"):
        told |= {
            "served_model_name": options.name,
            "weight_version": "default",
            "reasoning_parser": "toy" if options.thinking == "parsed" else None,
            "tool_call_parser": "toy" if options.tool_parser else None,
            "has_image_understanding": options.vision,
            "has_audio_understanding": False,
            "model_type": "llama",
            "architectures": ["LlamaForCausalLM"],
        }
    return Reply(state.faults("about", told, state.at(call, "model_info")))


def server_info(state: State, call: Call) -> Reply:
    """Answer /server_info and its old name."""
    options, scheduler = state.options, state.scheduler
    told: dict[str, Any] = {
        "model_path": options.name, "tokenizer_path": options.name, "served_model_name": options.name,
        "context_length": options.context, "is_embedding": options.kind != "generate", "tp_size": 1,
        "dp_size": options.ranks,
        "max_running_requests": options.running, "page_size": options.page, "disable_radix_cache": not options.radix,
        "reasoning_parser": "toy" if options.thinking == "parsed" else None,
        "tool_call_parser": "toy" if options.tool_parser else None,
        "quantization": None, "kv_cache_dtype": "auto", "dtype": "auto", "chunked_prefill_size": 8192,
        "speculative_algorithm": "NGRAM" if options.together > 1 else None,
        "speculative_num_draft_tokens": options.together if options.together > 1 else None,
        "enable_lora": bool(options.adapters), "lora_paths": list(options.adapters) or None, "enable_metrics": True,
        "status": "ready", "version": options.release, "max_total_num_tokens": options.capacity,
        "max_req_input_len": options.context - 6,
    }  # fmt: skip
    one = {
        "last_gen_throughput": round(scheduler.throughput, 2),
        "memory_usage": {"weight": 15.2, "kvcache": 40.1, "token_capacity": options.capacity, "graph": 1.1},
        "effective_max_running_requests_per_dp": options.running,
    }
    if options.together > 1:
        one["avg_spec_accept_length"] = float(options.together)
    told["internal_states"] = [dict(one) for _ in range(options.ranks)]
    return Reply(state.faults("about", told, state.at(call, "server_info")))


def loads(state: State, call: Call) -> Reply:
    """Answer /v1/loads."""
    options, scheduler = state.options, state.scheduler
    listed = []
    for rank in range(options.ranks):
        mine = [job for job in scheduler.running if job.rank == rank]
        used = sum(len(job.ids) + len(job.out) for job in mine) + (scheduler.leaked_tokens if rank == 0 else 0)
        running = len(mine) + (scheduler.leaked_requests if rank == 0 else 0)
        waiting = len(scheduler.waiting) if rank == 0 else 0
        listed.append(
            {
                "timestamp": time.time(),
                "dp_rank": rank,
                "num_running_reqs": running,
                "num_waiting_reqs": waiting,
                "num_used_tokens": used,
                "num_total_tokens": used,
                "max_total_num_tokens": options.capacity,
                "max_running_requests": options.running,
                "token_usage": round(used / options.capacity, 4),
                "gen_throughput": round(scheduler.throughput, 2),
                "cache_hit_rate": _hit_rate(state),
                "utilization": round(running / options.running, 4),
                "queues": {"waiting": waiting, "grammar": 0, "paused": 0, "retracted": 0},
            }
        )
    body = {
        "timestamp": datetime.now(UTC).isoformat(),
        "version": options.release,
        "num_accelerators": options.ranks,
        "loads": listed,
    }
    return Reply(state.faults("about", body, state.at(call, "loads")))


def get_load(state: State, call: Call) -> Reply:
    """Answer /get_load, which older releases have."""
    if state.options.release >= "0.5.21":
        raise Refusal("Not Found", 404)
    whole = loads(state, call).body["loads"]
    return Reply(
        [
            {
                "dp_rank": one["dp_rank"],
                "num_reqs": one["num_running_reqs"],
                "num_waiting_reqs": one["num_waiting_reqs"],
                "num_tokens": one["num_used_tokens"],
            }
            for one in whole
        ]
    )


def _hit_rate(state: State) -> float:
    return round(state.scheduler.reused / max(1, state.scheduler.prompted), 4)


def metrics(state: State, call: Call) -> Reply:
    """Answer /metrics in the format of Prometheus."""
    scheduler, options = state.scheduler, state.options
    label = f'{{model_name="{options.name}",tp_rank="0",pp_rank="0",engine_type="unified"}}'
    lines: list[str] = []
    values: dict[str, tuple[str, float]] = {
        "prompt_tokens_total": ("counter", scheduler.prompted),
        "generation_tokens_total": ("counter", scheduler.generated),
        "cached_tokens_total": ("counter", scheduler.reused),
        "num_requests_total": ("counter", scheduler.finished + scheduler.aborted),
        "num_aborted_requests_total": ("counter", scheduler.aborted),
        "num_running_reqs": ("gauge", scheduler.running_count),
        "num_queue_reqs": ("gauge", len(scheduler.waiting)),
        "num_used_tokens": ("gauge", scheduler.used_tokens),
        "token_usage": ("gauge", scheduler.used_tokens / (options.capacity * options.ranks)),
        "cache_hit_rate": ("gauge", _hit_rate(state)),
        "gen_throughput": ("gauge", scheduler.throughput),
        "max_total_num_tokens": ("gauge", options.capacity * options.ranks),
        "num_retracted_reqs": ("gauge", 0),
        "num_grammar_queue_reqs": ("gauge", 0),
    }
    values = state.faults("metrics", values, state.at(call))
    for name, (kind, value) in values.items():
        lines += [f"# TYPE sglang:{name} {kind}", f"sglang:{name}{label} {float(value)}"]
    for name, seen in (
        ("e2e_request_latency_seconds", scheduler.latencies),
        ("time_to_first_token_seconds", scheduler.first_tokens),
    ):
        lines.append(f"# TYPE sglang:{name} histogram")
        for edge in (0.1, 0.5, 1.0, 5.0, 30.0):
            lines.append(
                f'sglang:{name}_bucket{{le="{edge}",{label[1:]} {float(sum(value <= edge for value in list(seen)))}'
            )
        lines.append(f'sglang:{name}_bucket{{le="+Inf",{label[1:]} {float(len(seen))}')
        lines += [f"sglang:{name}_count{label} {float(len(seen))}", f"sglang:{name}_sum{label} {sum(seen)}"]
    return Reply("\n".join(lines) + "\n", kind="text/plain; version=0.0.4; charset=utf-8")
