"""Describe the host and the models of a launch for the twin, from facts of a host or from what the caller states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from packaging.utils import canonicalize_name

from checks.facts.derived.hardware import find_gpu
from checks.facts.launch_evidence import Launch
from launcher.plan.launch_facts import engine_version

DEFAULT_CUDA = "13.0"
_MODEL_FILES = {"config": "config.json", "quant_config": "hf_quant_config.json"}


class Simulated(Struct, frozen=True, kw_only=True):
    """What the twin is told instead of a host. `unknown` says what it is not told, in words."""

    gpus: tuple[Mapping[str, Any], ...] = ()  # name, memory_mib, capability
    cuda: str = DEFAULT_CUDA
    machine: Mapping[str, int] = field(default_factory=dict)  # cpus, numa_nodes, memory_bytes; empty: not measured
    packages: Mapping[str, str | None] = field(default_factory=dict)  # None: not installed
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # path → file → document
    unknown: tuple[str, ...] = ()


def simulated(
    launch: Launch,
    assumed: Mapping[str, str],
    raw: Mapping[str, Any] | None = None,
    folders: Mapping[str, Any] | None = None,
) -> Simulated:
    """Return the simulation of a launch: of the recorded host `raw`, else of the GPUs that the launch names.

    `assumed` are the packages that the release brings: of a host whose packages were not measured, or were measured
    with another release. `folders` are contents of model folders that
    were read here: path → content, as `read_checkpoint` reports it.
    """
    contents = [(raw or {}).get(name) or {} for name in ("model", "draft_model")]
    models = {item["path"]: _files(item) for item in contents if item.get("config")}
    models |= {path: _files(item) for path, item in (folders or {}).items() if item.get("config")}
    gpus = _measured((raw or {}).get("gpus") or ()) or _stated(launch.gpu)
    engine = (raw or {}).get("engine") or {}
    measured = bool(launch.packages) and (raw is None or engine_version(raw) in (None, launch.engine))
    path = str(launch.flags.get("model-path") or launch.flags.get("model") or "")
    unknown = [] if gpus or launch.flags.get("device") == "cpu" else ["the GPUs"]
    unknown += [] if path in models else [f"config.json of {path}" if path else "the model"]
    return Simulated(
        gpus=gpus,
        cuda=str(engine.get("torch_cuda") or DEFAULT_CUDA),
        machine=_machine((raw or {}).get("host") or {}) if launch.flags.get("device") == "cpu" else {},
        packages=_packages(launch.packages if measured else {}, assumed),
        models=models,
        unknown=tuple(unknown),
    )


def _packages(measured: Mapping[str, str | None], assumed: Mapping[str, str]) -> dict[str, str | None]:
    """Return the measured packages; one that the release requires counts as there, because rules report its absence."""
    required = {canonicalize_name(name) for name in assumed}
    known = {name: version for name, version in measured.items() if version or canonicalize_name(name) not in required}
    return {**assumed, **known}


def _machine(host: Mapping[str, Any]) -> dict[str, int]:
    """Return the processors and the memory of a host; the engine asks for them only where it runs on the CPU."""
    memory = [(host.get("memory") or {}).get("total"), host.get("memory_limit")]
    known = [size for size in memory if isinstance(size, int) and size > 0]
    if not known or not host.get("cpus") or not host.get("numa_nodes"):
        return {}
    return {"cpus": host["cpus"], "numa_nodes": host["numa_nodes"], "memory_bytes": min(known)}


def _files(content: Mapping[str, Any]) -> dict[str, Any]:
    return {file: content[key] for key, file in _MODEL_FILES.items() if content.get(key)}


def _measured(gpus: Any) -> tuple[dict[str, Any], ...]:
    found = []
    for gpu in gpus:
        capability = [int(part) for part in str(gpu.get("compute_cap", "")).split(".") if part.isdecimal()]
        memory = str(gpu.get("memory.total", "")).split()
        if len(capability) != 2 or not memory or not memory[0].isdecimal():
            return ()
        found.append({"name": str(gpu["name"]), "memory_mib": int(memory[0]), "capability": capability})
    return tuple(found)


def _stated(gpu: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    known = find_gpu(str(gpu.get("name") or ""))
    sm = gpu.get("sm") or (known.sm if known else None)
    memory = gpu.get("vram_gb") or (known.vram_gb if known else None)
    count = gpu.get("count") or 1
    if not isinstance(sm, int) or not memory or not isinstance(count, int):
        return ()
    one = {"name": f"NVIDIA {gpu['name']}", "memory_mib": int(memory * 1024), "capability": [sm // 10, sm % 10]}
    return (one,) * count
