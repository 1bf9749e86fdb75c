"""Host measurements against the launch: ports, shared memory, limits, proxies, host memory, NUMA."""

from typing import Any

import pytest

from checks.facts.derived import extend


def facts_of(**given: Any) -> dict[str, Any]:
    named = {name.replace("__", ".", 1).replace("_", "-") if name.startswith("flag") else name.replace("__", ".", 1): v
             for name, v in given.items()}  # fmt: skip
    return extend({"engine.version": "0.5.9", **named})


def test_http_port_is_the_default_when_none_is_given() -> None:
    assert facts_of(host__ports_in_use=[30000])["host.http_port_taken"] is True
    assert facts_of(host__ports_in_use=[30000], flag__port="31000")["host.http_port_taken"] is False


def test_only_the_first_node_binds_the_rendezvous_port() -> None:
    launch = {"host__ports_in_use": [20000], "flag__dist_init_addr": "10.0.0.1:20000", "flag__nnodes": "2"}
    assert facts_of(**launch)["host.internal_port_of"] == "dist-init-addr"
    assert facts_of(**launch, flag__node_rank="1")["host.internal_port_taken"] is False


def test_data_parallel_attention_derives_a_port_from_the_http_port() -> None:
    launch = {"flag__enable_dp_attention": True, "flag__dp_size": "2", "flag__tp_size": "2"}
    assert facts_of(**launch, host__ports_in_use=[30233])["host.internal_port"] == 30233


@pytest.mark.parametrize(("shm", "tp", "small"), [(0.0625, "2", True), (0.0625, "1", False), (1, "8", False)])
def test_default_shared_memory_of_a_container_is_too_small_for_two_ranks(shm: float, tp: str, small: bool) -> None:
    assert facts_of(host__shm_gb=shm, flag__tp_size=tp)["host.shm_too_small"] is small


@pytest.mark.parametrize(("limit", "limited"), [(64, True), ("unlimited", False), (-1, False), (1 << 22, False)])
def test_unlimited_locked_memory_is_no_limit(limit: object, limited: bool) -> None:
    assert facts_of(host__memlock_kb=limit)["host.memlock_limited"] is limited


def test_a_warm_up_request_through_a_proxy_is_a_fact() -> None:
    assert facts_of(env__http_proxy="http://p:1")["launch.warmup_through_proxy"] is True
    assert facts_of(env__http_proxy="http://p:1", env__no_proxy="*")["launch.warmup_through_proxy"] is False


def test_hybrid_models_take_the_host_pool_twice() -> None:
    launch = {"flag__enable_hierarchical_cache": True, "flag__hicache_size": "50", "flag__tp_size": "4"}
    plain = facts_of(**launch, model__hybrid=False, host__free_memory_gb=300)
    hybrid = facts_of(**launch, model__hybrid=True, host__free_memory_gb=300)
    assert (plain["launch.hicache_gb"], hybrid["launch.hicache_gb"]) == (200, 400)
    assert (plain["launch.hicache_exceeds_memory"], hybrid["launch.hicache_exceeds_memory"]) == (False, True)


def test_ranks_on_the_cpu_need_numa_nodes_or_cores() -> None:
    launch = {"flag__device": "cpu", "flag__tp_size": "2", "host__numa_nodes": 1}
    assert facts_of(**launch)["host.cpu_ranks_exceed_nodes"] is True
    assert facts_of(**launch, env__SGLANG_CPU_OMP_THREADS_BIND="0|1")["host.cpu_ranks_exceed_nodes"] is False


def test_a_cache_on_a_network_counts_when_it_is_the_one_the_launch_uses() -> None:
    looked = {"host__triton_cache_filesystem": "nfs4", "host__triton_cache_dir": "/home/me/.triton/cache"}
    assert facts_of(**looked)["host.triton_cache_on_network"] is True
    assert facts_of(**looked, env__TRITON_CACHE_DIR="/home/me/.triton/cache")["host.triton_cache_on_network"] is True
    assert "host.triton_cache_on_network" not in facts_of(**looked, env__TRITON_CACHE_DIR="/tmp/cache")


@pytest.mark.parametrize(
    ("wanted", "nodes", "missing"),
    [(["5"], 1, True), ("0 1", 2, False), ("2", 2, True), ("x", 1, False), (None, 1, None), ("1", None, None)],
)
def test_a_numa_node_that_the_host_lacks(wanted: Any, nodes: int | None, missing: bool | None) -> None:
    facts = {"flag.numa-node": wanted, "host.numa_nodes": nodes}
    assert extend(facts).get("launch.numa_node_missing") is missing
