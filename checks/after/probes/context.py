"""The context of a probe: the server as /server_info describes it, the profile's expectations, and the baseline.

Parsed once from `/server_info`, the profile's `expect` mapping (`expectations`) and a stored validation, so that the
probes use only typed values. Replies to requests are `exchange.Answer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from checks.after.probes.expect import Expect

LARGEST_CONCURRENCY = 64


class Server(Struct, frozen=True, kw_only=True):
    """The server as `/server_info` describes it; None or empty where the release does not report a value."""

    model: str = ""
    version: str = ""
    generates: bool = True
    running: int | None = None  # requests decoded concurrently, summed over all data-parallel ranks
    ranks: int = 1  # data-parallel ranks
    context: int | None = None  # tokens, prompt and answer together
    chunk: int | None = None  # chunked prefill size in tokens
    page: int = 1
    radix_cache: bool = True
    graph_sizes: tuple[int, ...] = ()  # batch sizes with a captured CUDA graph
    tool_parser: str = ""
    reasoning_parser: str = ""
    adapters: tuple[str, ...] = ()
    speculative: str = ""  # algorithm, empty when off
    spec_steps: int | None = None
    spec_drafts: int | None = None  # draft tokens per verify step, the root included
    metrics: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)


class Baseline(Struct, frozen=True, kw_only=True):
    """Figures and samples of an earlier validation of the same model."""

    figures: Mapping[str, Mapping[str, float | str]] = field(default_factory=dict)
    samples: Mapping[str, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)


class Context(Struct, frozen=True, kw_only=True):
    """Everything a probe may use besides the replies."""

    server: Server
    suite: str = "smoke"
    expect: Expect = Expect()
    baseline: Baseline | None = None
    live_baseline: bool = False  # a second server, the live baseline, is up and measured in turn with this one
    live_running: int | None = None  # requests the live baseline decodes concurrently, where it reports that

    @property
    def model(self) -> str:
        """The model name that requests contain."""
        return self.expect.model or self.server.model or "default"

    @property
    def concurrency(self) -> int:
        """The most requests in flight: at most what the server decodes concurrently, and at most 64."""
        allowed = min(self.server.running or 8, LARGEST_CONCURRENCY)
        return max(1, min(self.expect.concurrency or allowed, allowed))

    @property
    def timeout(self) -> float:
        """Seconds one request may take."""
        return self.expect.timeout or (30.0 if self.suite in ("smoke", "soak") else 120.0)

    def samples(self, probe: str, name: str) -> tuple[float, ...]:
        """Return the baseline's samples of a probe; empty when there are none."""
        return self.baseline.samples.get(probe, {}).get(name, ()) if self.baseline else ()


def parse_server(info: Mapping[str, Any]) -> Server:
    """Parse the `/server_info` (older: `/get_server_info`) of any release from 0.4.10 on."""
    states = info.get("internal_states")
    state = states[0] if isinstance(states, list) and states and isinstance(states[0], Mapping) else {}
    per_rank = _int(state.get("effective_max_running_requests_per_dp"))
    ranks = _int(info.get("dp_size")) or 1
    running = per_rank * ranks if per_rank else _int(info.get("max_running_requests"))
    speculative = str(info.get("speculative_algorithm") or "")
    chunk = _int(info.get("chunked_prefill_size"))
    return Server(
        model=str(info.get("served_model_name") or info.get("model_path") or ""),
        version=str(info.get("version") or ""),
        generates=not info.get("is_embedding"),
        running=running,
        ranks=ranks,
        # max_req_input_len leaves room for the answer; context_length is null unless the flag was set
        context=_int(info.get("max_req_input_len")) or _int(info.get("context_length")),
        chunk=chunk if chunk and chunk > 0 else None,
        page=_int(info.get("page_size")) or 1,
        radix_cache=not info.get("disable_radix_cache"),
        graph_sizes=_graph_sizes(info),
        tool_parser=str(info.get("tool_call_parser") or ""),
        reasoning_parser=str(info.get("reasoning_parser") or ""),
        adapters=_adapters(info.get("lora_paths")),
        speculative=speculative,
        spec_steps=_int(info.get("speculative_num_steps")) if speculative else None,
        spec_drafts=_int(info.get("speculative_num_draft_tokens")) if speculative else None,
        metrics=bool(info.get("enable_metrics")),
        info=info,
    )


def parse_baseline(data: Mapping[str, Any] | None) -> Baseline | None:
    """Parse a stored validation (`validation.as_dict`) as a baseline; None when it is empty."""
    if not data:
        return None
    figures = {str(item["id"]): dict(item.get("figures") or {}) for item in data.get("verdicts") or () if "id" in item}
    samples = {
        str(probe): {str(name): tuple(float(x) for x in values) for name, values in parts.items()}
        for probe, parts in (data.get("samples") or {}).items()
    }
    return Baseline(figures=figures, samples=samples)


def _graph_sizes(info: Mapping[str, Any]) -> tuple[int, ...]:
    if info.get("disable_cuda_graph") or info.get("device") == "cpu":
        return ()
    config = info.get("cuda_graph_config")  # newest releases: {decode: {backend, bs, ..}, prefill: ..}
    decode = config.get("decode") if isinstance(config, Mapping) else None
    if isinstance(decode, Mapping) and decode.get("backend") == "disabled":
        return ()
    listed = decode.get("bs") if isinstance(decode, Mapping) else None
    sizes = listed or info.get("cuda_graph_bs") or info.get("cuda_graph_bs_decode") or ()
    return tuple(sorted(size for size in sizes if isinstance(size, int))) if isinstance(sizes, Sequence) else ()


def _adapters(paths: Any) -> tuple[str, ...]:
    if isinstance(paths, Mapping):
        return tuple(str(name) for name in paths)
    if not isinstance(paths, list):
        return ()
    return tuple(
        str(item.get("lora_name") or "") if isinstance(item, Mapping) else str(item).partition("=")[0] for item in paths
    )


def _int(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
