"""Host measurements against the launch: driver, compilers, ports, shared memory, proxies, memory, dispatch buffers."""

from typing import Any

import pytest

from checks.facts.derived import extend
from checks.facts.derived.proxies import warmup_goes_through_proxy


def facts_of(**given: Any) -> dict[str, Any]:
    named = {name.replace("__", ".", 1).replace("_", "-") if name.startswith("flag") else name.replace("__", ".", 1): v
             for name, v in given.items()}  # fmt: skip
    return extend({"engine.version": "0.5.9", **named})


@pytest.mark.parametrize(
    ("driver", "torch", "supported"),
    [("570.195.03", "2.11.0+cu130", False), ("570.195.03", "2.9.1+cu129", True), ("580.95.05", "2.9.1+cu128", True)],
)
def test_newer_cuda_runs_within_one_major_version_only(driver: str, torch: str, supported: bool) -> None:
    assert facts_of(host__driver=driver, package__torch=torch)["host.driver_supports_torch"] is supported


def test_absent_driver_is_told_from_one_nobody_looked_for() -> None:
    assert facts_of(host__driver=None)["host.driver_absent"] is True
    assert facts_of(host__driver="580.95.05", host__gpus_visible=0)["host.driver_absent"] is True
    assert "host.driver_absent" not in facts_of()


@pytest.mark.parametrize(
    ("sm", "nvcc", "knows"), [(100, "12.8", True), (103, "12.8", False), (120, "12.4", False), (90, "12.1", True)]
)
def test_compiler_is_judged_by_the_gpu(sm: int, nvcc: str, knows: bool) -> None:
    assert facts_of(host__sm=sm, host__nvcc=nvcc)["host.nvcc_knows_gpu"] is knows


@pytest.mark.parametrize(
    ("home", "malformed"),
    [
        ("/usr/local/cuda-12.8", False),
        ("/usr/local/cuda-12.8/", False),
        (":/usr/local/cuda", True),
        ("/usr/local/cuda:/opt/cuda", True),
        ("cuda-12.8", True),
    ],
)
def test_toolkit_variable_must_be_one_directory(home: str, malformed: bool) -> None:
    assert extend({"env.CUDA_HOME": home})["host.cuda_home_malformed"] is malformed


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


@pytest.mark.parametrize(
    ("env", "host", "engine", "through"),
    [
        ({"http_proxy": "http://p:1"}, "127.0.0.1", "0.5.9", True),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "127.0.0.1"}, "127.0.0.1", "0.5.9", False),
        ({"http_proxy": "http://p:1", "no_proxy": "127.0.0.0/8"}, "127.0.0.1", "0.5.9", False),
        ({"http_proxy": "http://p:1", "no_proxy": "127.0.0.1"}, "0.0.0.0", "0.5.9", True),
        ({"http_proxy": "http://p:1", "no_proxy": "127.0.0.1"}, "0.0.0.0", "0.5.10", False),
        ({"https_proxy": "http://p:1"}, "127.0.0.1", "0.5.9", False),
        ({"all_proxy": "socks5://p:1"}, "127.0.0.1", "0.5.9", True),
        ({"http_proxy": "http://p:1", "no_proxy": ".example.org"}, "gpu1.example.org", "0.5.9", False),
        ({}, "127.0.0.1", "0.5.9", False),
    ],
)
def test_warm_up_request_follows_the_proxy_rules(env: dict[str, str], host: str, engine: str, through: bool) -> None:
    facts = {"engine.version": engine, "flag.host": host, **{f"env.{name}": value for name, value in env.items()}}
    assert warmup_goes_through_proxy(facts) is through


def test_hybrid_models_take_the_host_pool_twice() -> None:
    launch = {"flag__enable_hierarchical_cache": True, "flag__hicache_size": "50", "flag__tp_size": "4"}
    plain = facts_of(**launch, model__hybrid=False, host__free_memory_gb=300)
    hybrid = facts_of(**launch, model__hybrid=True, host__free_memory_gb=300)
    assert (plain["launch.hicache_gb"], hybrid["launch.hicache_gb"]) == (200, 400)
    assert (plain["launch.hicache_exceeds_memory"], hybrid["launch.hicache_exceeds_memory"]) == (False, True)


@pytest.mark.parametrize(
    ("value", "expandable"),
    [("expandable_segments:True", True), ("max_split_size_mb:64,expandable_segments: true", True), ("", False)],
)
def test_expandable_segments_are_found_among_other_settings(value: str, expandable: bool) -> None:
    assert extend({"env.PYTORCH_CUDA_ALLOC_CONF": value})["launch.expandable_segments"] is expandable


def test_dispatch_buffer_holds_the_graph_batch_of_one_rank_times_its_draft_tokens() -> None:
    launch = {"flag__moe_a2a_backend": "deepep", "flag__cuda_graph_max_bs_decode": "64"}
    assert facts_of(**launch)["launch.dispatch_exceeds"] is False
    drafted = facts_of(**launch, flag__speculative_algorithm="EAGLE", flag__speculative_num_steps="3",
                       flag__speculative_eagle_topk="1", flag__speculative_num_draft_tokens="4")  # fmt: skip
    assert (drafted["launch.dispatch_tokens"], drafted["launch.dispatch_exceeds"]) == (256, True)
    limited = facts_of(**launch, flag__max_running_requests="16", flag__enable_dp_attention=True, flag__dp_size="8",
                       flag__tp_size="8")  # fmt: skip
    assert limited["launch.dispatch_tokens"] == 2


def test_hidden_sizes_of_the_low_latency_kernels_depend_on_the_release() -> None:
    launch = {"flag.moe-a2a-backend": "deepep", "model.hidden_size": 6144}
    assert extend({**launch, "engine.version": "0.5.2"})["launch.deepep_hidden_unsupported"] is True
    assert extend({**launch, "engine.version": "0.5.9"})["launch.deepep_hidden_unsupported"] is False


def test_sizes_given_per_node_are_noticed() -> None:
    launch = {"flag__nnodes": "2", "flag__tp_size": "8", "flag__dist_init_addr": "10.0.0.1:20000"}
    assert facts_of(**launch, host__gpu_count=8)["launch.size_is_per_node"] is True
    assert facts_of(**launch, host__gpu_count=4)["launch.size_is_per_node"] is False


def test_ranks_on_the_cpu_need_numa_nodes_or_cores() -> None:
    launch = {"flag__device": "cpu", "flag__tp_size": "2", "host__numa_nodes": 1}
    assert facts_of(**launch)["host.cpu_ranks_exceed_nodes"] is True
    assert facts_of(**launch, env__SGLANG_CPU_OMP_THREADS_BIND="0|1")["host.cpu_ranks_exceed_nodes"] is False


@pytest.mark.parametrize(("text", "number"), [("2.4", 2.04), ("2.34", 2.34), ("glibc 2.28", 2.28)])
def test_c_library_versions_are_compared_as_versions(text: str, number: float) -> None:
    assert extend({"host.glibc": text})["host.glibc_version"] == pytest.approx(number)
