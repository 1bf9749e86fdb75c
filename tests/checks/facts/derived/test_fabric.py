"""What passes between ranks: all-reduce, dispatch buffers, hidden sizes of DeepEP, rendezvous, NVLink."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.derived.fabric import derive


@pytest.mark.parametrize(
    ("variable", "value", "expandable"),
    [
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", True),
        ("PYTORCH_ALLOC_CONF", "max_split_size_mb:64,expandable_segments: true", True),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:False", False),
        ("PYTORCH_CUDA_ALLOC_CONF", "", False),
    ],
)
def test_expandable_segments_are_found_among_other_settings(variable: str, value: str, expandable: bool) -> None:
    assert derive({f"env.{variable}": value})["launch.expandable_segments"] is expandable


@pytest.mark.parametrize(
    ("facts", "used"),
    [
        ({}, False),
        ({"launch.tp_size": 2}, True),
        ({"launch.tp_size": 8, "launch.nnodes": 2}, False),
        ({"launch.tp_size": 8, "flag.disable-custom-all-reduce": True}, False),
    ],
)
def test_the_engines_own_all_reduce_is_for_several_ranks_of_one_node(facts: dict[str, Any], used: bool) -> None:
    assert derive(facts)["launch.custom_all_reduce"] is used


# --- dispatch buffers

DEEPEP = {"flag.moe-a2a-backend": "deepep"}
GRAPH = {"flag.cuda-graph-max-bs-decode": "64"}


@pytest.mark.parametrize(
    ("facts", "tokens", "limit", "exceeds"),
    [
        ({}, 64, 128, False),
        ({"launch.spec_draft_tokens": 4}, 256, 128, True),
        ({"launch.spec_draft_tokens": 2}, 128, 128, False),
        ({"env.SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK": "32"}, 64, 32, True),
        ({"flag.max-running-requests": "16"}, 16, 128, False),
        ({"flag.max-running-requests": "17", "launch.dp_attention": True, "launch.dp_size": 8}, 3, 128, False),
        ({"flag.max-running-requests": "17", "launch.dp_size": 8}, 17, 128, False),
        ({"flag.deepep-mode": "low_latency"}, 64, 128, False),
    ],
)
def test_a_dispatch_buffer_holds_the_graph_batch_of_one_rank_times_its_draft_tokens(
    facts: dict[str, Any], tokens: int, limit: int, exceeds: bool
) -> None:
    found = derive({**DEEPEP, **GRAPH, **facts})
    assert (found["launch.dispatch_tokens"], found["launch.dispatch_limit"], found["launch.dispatch_exceeds"]) == (
        tokens, limit, exceeds,
    )  # fmt: skip


@pytest.mark.parametrize(
    "facts",
    [
        {"flag.moe-a2a-backend": "none"},
        {"flag.moe-a2a-backend": "flashinfer"},
        {**DEEPEP, "flag.deepep-mode": "normal"},
        {**DEEPEP, "flag.disaggregation-mode": "prefill"},
    ],
)
def test_without_low_latency_kernels_no_buffer_is_judged(facts: dict[str, Any]) -> None:
    assert "launch.dispatch_exceeds" not in derive({**GRAPH, **facts})


def test_without_a_batch_size_only_the_limit_is_known() -> None:
    found = derive(DEEPEP)
    assert found["launch.dispatch_limit"] == 128 and "launch.dispatch_tokens" not in found


@pytest.mark.parametrize(
    ("facts", "exceeds"),
    [
        ({}, True),
        ({"flag.chunked-prefill-size": "128"}, False),
        ({"flag.chunked-prefill-size": "129"}, True),
        ({"flag.disaggregation-mode": "decode"}, False),
    ],
)
def test_a_chunk_must_fit_where_low_latency_kernels_also_prefill(facts: dict[str, Any], exceeds: bool) -> None:
    assert derive({**DEEPEP, "flag.deepep-mode": "low_latency", **facts})["launch.low_latency_prefill"] is exceeds
    assert "launch.low_latency_prefill" not in derive({**DEEPEP, **facts})


@pytest.mark.parametrize(
    ("facts", "limit", "exceeds"),
    [
        ({}, 4096, None),
        ({"flag.chunked-prefill-size": "4096"}, 4096, False),
        ({"flag.chunked-prefill-size": "8k"}, 4096, True),
        ({"flag.chunked-prefill-size": "8k", "env.SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK": "8192"}, 8192, False),
    ],
)
def test_mori_dispatches_whole_chunks(facts: dict[str, Any], limit: int, exceeds: bool | None) -> None:
    found = derive({"flag.moe-a2a-backend": "mori", **facts})
    assert (found["launch.dispatch_limit"], found.get("launch.mori_chunk_exceeds")) == (limit, exceeds)


# --- hidden sizes


@pytest.mark.parametrize(
    ("hidden", "engine", "unsupported", "doubtful"),
    [
        (7168, "0.5.9", None, None),
        (7168, None, None, None),
        (6144, "0.5.2", True, None),
        (6144, "0.5.3", False, None),
        (6144, None, False, None),
        (5000, "0.5.9", True, False),
        (5000, "0.5.18", False, True),
        (5000, None, False, True),
    ],
)
def test_hidden_sizes_of_the_low_latency_kernels_depend_on_the_release(
    hidden: int, engine: str | None, unsupported: bool | None, doubtful: bool | None
) -> None:
    found = derive({**DEEPEP, "model.hidden_size": hidden, "engine.version": engine})
    assert found.get("launch.deepep_hidden_unsupported") is unsupported
    assert found.get("launch.deepep_hidden_doubtful") is doubtful


@pytest.mark.parametrize(
    "facts", [{"flag.moe-a2a-backend": "none"}, {"flag.deepep-mode": "normal"}, {"flag.disaggregation-mode": "prefill"}]
)
def test_hidden_sizes_do_not_matter_without_those_kernels(facts: dict[str, Any]) -> None:
    found = derive({**DEEPEP, "model.hidden_size": 5000, "engine.version": "0.5.9", **facts})
    assert not [name for name in found if "hidden" in name]


# --- nodes


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("127.0.0.1:5000", True),
        ("127.1.2.3:5000", True),
        ("localhost:5000", True),
        ("[::1]:5000", True),
        ("0.0.0.0:5000", True),
        ("10.0.0.1:5000", False),
        ("localhost.example.org:5000", False),
        (None, False),
    ],
)
def test_a_rendezvous_at_the_loopback_is_noticed(address: str | None, loopback: bool) -> None:
    assert derive({"flag.dist-init-addr": address})["launch.rendezvous_is_loopback"] is loopback


@pytest.mark.parametrize(
    ("rank", "nodes", "beyond"), [("0", 2, False), ("1", 2, False), ("2", 2, True), (None, 2, False), ("1", None, True)]
)
def test_ranks_of_nodes_count_from_zero(rank: str | None, nodes: int | None, beyond: bool) -> None:
    assert derive({"flag.node-rank": rank, "launch.nnodes": nodes})["launch.node_rank_beyond"] is beyond


@pytest.mark.parametrize(
    ("tp", "pp", "cards", "per_node"), [(8, 1, 8, True), (16, 1, 8, False), (4, 2, 8, True), (8, 2, 8, False)]
)
def test_sizes_given_per_node_are_noticed(tp: int, pp: int, cards: int, per_node: bool) -> None:
    layout = {"launch.tp_size": tp, "launch.pp_size": pp, "host.gpu_count": cards}
    assert derive({**layout, "launch.nnodes": 2})["launch.size_is_per_node"] is per_node
    assert "launch.size_is_per_node" not in derive({**layout, "launch.nnodes": 1})


# --- NVLink


@pytest.mark.parametrize(
    ("facts", "pcie"),
    [
        ({"host.nvlink": False}, True),
        ({"host.nvlink": True}, False),
        ({"host.nvlink": True, "host.topology": "GPU0 X PHB"}, False),
        ({"host.topology": "GPU0 X NV18 NV18"}, False),
        ({"host.topology": "GPU0 X PHB NODE SYS"}, True),
        ({"host.topology": ""}, None),
        ({}, None),
    ],
)
def test_gpus_without_nvlink_are_known_by_statement_or_topology(facts: dict[str, Any], pcie: bool | None) -> None:
    assert derive(facts).get("host.pcie_only") is pcie


def test_what_was_measured_is_not_replaced() -> None:
    assert "host.pcie_only" not in derive({"host.topology": "X PHB", "host.pcie_only": False})
