"""Derive facts about the host for this launch: ports, shared memory, limits, proxies, host memory, NUMA.

Each fact compares a measured `host.` value (or an `env.` value) with the needs of the launch. `toolchain` covers driver
and compilers, `fabric` the network between ranks, `proxies` the proxy rules.
"""

from __future__ import annotations

import re
from typing import Any

from checks.catalog.conditions import Facts, as_number
from checks.facts.derived.proxies import warmup_goes_through_proxy

_DEFAULT_PORT = 30000
_ZMQ_DELTA = 233  # 0.5.9:srt/server_args.py:5595, rendezvous of data-parallel attention without --dist-init-addr
_SHM_PER_RANK_GB = 0.03125  # NCCL keeps about 10 MB per peer and channel set; 64 MB (docker's default) fails at 2 ranks
_NETWORK_FILE_SYSTEMS = re.compile(r"^(nfs\d?|cifs|smb\w*|lustre|gpfs|beegfs|ceph|fuse\..*|glusterfs|wekafs|9p)$")
_RESERVE_GB = 10.7  # the engine keeps 10 GiB of host memory free (0.5.9:srt/mem_cache/memory_pool_host.py:175)
_ENOUGH_LOCKED_KB = 1 << 20


def derive(facts: Facts) -> dict[str, Any]:
    """Return `host.` and `launch.` facts: see docs/facts.md."""
    found = {
        **_ports(facts),
        **_environment(facts),
        **_shared_memory(facts),
        **_limits(facts),
        **_host_memory(facts),
        **_cpu_ranks(facts),
        **_numa(facts),
    }
    return {name: value for name, value in found.items() if value is not None and facts.get(name) is None}


def _ports(facts: Facts) -> dict[str, Any]:
    port = int(as_number(facts.get("flag.port")) or _DEFAULT_PORT)
    found: dict[str, Any] = {"launch.port": port}
    taken = facts.get("host.ports_in_use")
    if not isinstance(taken, list | tuple):
        return found
    used = {int(number) for item in taken if (number := as_number(item)) is not None}
    internal = {name: value for name, value in _internal_ports(facts, port).items() if value in used and value != port}
    found |= {"host.http_port_taken": port in used, "host.internal_port_taken": bool(internal)}
    if internal:
        name, value = next(iter(internal.items()))
        found |= {"host.internal_port": value, "host.internal_port_of": name}
    return found


def _internal_ports(facts: Facts, port: int) -> dict[str, int]:
    """Return the ports that the launch will bind in addition to the HTTP port, by the flag that determines them."""
    ports: dict[str, int] = {}
    rendezvous = re.search(r":(\d+)$", str(facts.get("flag.dist-init-addr") or ""))
    first_node = (as_number(facts.get("flag.node-rank")) or 0) == 0
    if rendezvous and first_node:
        ports["dist-init-addr"] = int(rendezvous[1])
    elif facts.get("launch.dp_attention"):
        ports["port"] = port + _ZMQ_DELTA
    for flag in ("nccl-port", "grpc-port", "engine-info-bootstrap-port"):
        if (number := as_number(facts.get(f"flag.{flag}"))) is not None:
            ports[flag] = int(number)
    if facts.get("flag.disaggregation-mode") == "prefill":
        ports["disaggregation-bootstrap-port"] = int(as_number(facts.get("flag.disaggregation-bootstrap-port")) or 8998)
    return ports


def _environment(facts: Facts) -> dict[str, Any]:
    found: dict[str, Any] = {"launch.warmup_through_proxy": warmup_goes_through_proxy(facts)}
    file_system = facts.get("host.triton_cache_filesystem")
    if file_system and facts.get("env.TRITON_CACHE_DIR") in (None, facts.get("host.triton_cache_dir")):
        found["host.triton_cache_on_network"] = bool(_NETWORK_FILE_SYSTEMS.match(str(file_system).lower()))
    return found


def _shared_memory(facts: Facts) -> dict[str, Any]:
    size = as_number(facts.get("host.shm_gb"))
    ranks = as_number(facts.get("launch.gpus_wanted"))
    if size is None or ranks is None:
        return {}
    local_ranks = ranks / (as_number(facts.get("launch.nnodes")) or 1)
    return {"host.shm_too_small": local_ranks > 1 and size < max(0.1, local_ranks * _SHM_PER_RANK_GB)}


def _limits(facts: Facts) -> dict[str, Any]:
    found: dict[str, Any] = {}
    locked = facts.get("host.memlock_kb")
    if locked is not None:
        number = as_number(locked)  # None: "unlimited"
        found["host.memlock_limited"] = number is not None and 0 <= number < _ENOUGH_LOCKED_KB
    devices = facts.get("host.rdma_devices")
    if "host.rdma_devices" in facts:
        found["host.rdma"] = bool(devices)
    return found


def _host_memory(facts: Facts) -> dict[str, Any]:
    limits = [as_number(facts.get(f"host.{name}")) for name in ("free_memory_gb", "memory_limit_gb")]
    known = [limit for limit in limits if limit is not None]
    if not known:
        return {}
    free = min(known)
    found: dict[str, Any] = {"host.usable_memory_gb": free}
    weights = as_number(facts.get("model.weights_gb"))
    if weights:
        found["host.weights_exceed_memory"] = weights > free
    pool = as_number(facts.get("flag.hicache-size"))
    if facts.get("flag.enable-hierarchical-cache") and pool:
        ranks = (as_number(facts.get("launch.gpus_wanted")) or 1) / (as_number(facts.get("launch.nnodes")) or 1)
        pools = 2 if facts.get("model.hybrid") is True else 1  # state and KV pools each take the size
        wanted = pool * ranks * pools
        found |= {"launch.hicache_gb": wanted, "launch.hicache_exceeds_memory": wanted + _RESERVE_GB > free}
    return found


def _numa(facts: Facts) -> dict[str, Any]:
    """Return whether `--numa-node` names a node that the host does not have."""
    nodes, wanted = as_number(facts.get("host.numa_nodes")), facts.get("flag.numa-node")
    if nodes is None or wanted is None:
        return {}
    words = wanted if isinstance(wanted, list | tuple) else str(wanted).split()
    numbers = [as_number(word) for word in words]
    return {"launch.numa_node_missing": any(number is not None and number >= nodes for number in numbers)}


def _cpu_ranks(facts: Facts) -> dict[str, Any]:
    """Compare the ranks of a CPU launch with the NUMA nodes; each rank uses one node unless its cores are bound."""
    if facts.get("flag.device") != "cpu" and facts.get("host.platform") != "cpu":
        return {}
    ranks = int(as_number(facts.get("launch.tp_size")) or 1) * int(as_number(facts.get("launch.pp_size")) or 1)
    bound = bool(facts.get("env.SGLANG_CPU_OMP_THREADS_BIND"))
    found: dict[str, Any] = {"launch.world_size": ranks, "launch.cpu_ranks_unbound": ranks > 1 and not bound}
    nodes = as_number(facts.get("host.numa_nodes"))
    if nodes is not None:
        found["host.cpu_ranks_exceed_nodes"] = ranks > nodes and not bound
        found["launch.cpu_ranks_unbound"] = False
    return found
