"""What the twin is told about a host comes from its recorded facts, else from what the caller states."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.launch_evidence import Launch
from launcher.twin.simulation import Simulated, simulated

RAW = {
    "host": {},
    "gpus": [{"name": "NVIDIA H200", "memory.total": "143771 MiB", "compute_cap": "9.0"}] * 2,
    "engine": {"torch_cuda": "12.9"},
    "model": {"path": "/data/m", "config": {"model_type": "llama"}, "quant_config": {"quantization": {}}},
    "draft_model": {"path": "/data/d", "config": {"model_type": "eagle"}},
}


def of(
    flags: dict[str, Any], raw: dict[str, Any] | None = None, gpu: dict[str, Any] | None = None, **more: Any
) -> Simulated:
    launch = Launch(engine="0.5.11", flags=flags, gpu=gpu or {}, **more)
    return simulated(launch, {"numpy": "2.0"}, raw)


def test_a_recorded_host_is_simulated_as_measured() -> None:
    host = of({"model-path": "/data/m"}, RAW, packages={"torch": "2.11.0", "deep-ep": None})
    assert host.gpus == ({"name": "NVIDIA H200", "memory_mib": 143771, "capability": [9, 0]},) * 2
    assert host.cuda == "12.9"
    assert host.packages == {"torch": "2.11.0", "deep-ep": None, "numpy": "2.0"}
    assert set(host.models) == {"/data/m", "/data/d"}
    assert set(host.models["/data/m"]) == {"config.json", "hf_quant_config.json"}
    assert host.unknown == ()


def test_packages_that_were_measured_with_another_release_do_not_count() -> None:
    raw = {**RAW, "engine": {"packages": {"sglang": "0.5.9", "torch": "2.9.1"}}}
    assert of({}, raw, packages={"torch": "2.9.1"}).packages == {"numpy": "2.0"}
    raw = {**RAW, "engine": {"packages": {"sglang": "0.5.11"}}}
    known = of({}, raw, packages={"torch": "2.11.0", "Num_Py": "2.1", "numpy": None, "ray": None}).packages
    assert known == {"torch": "2.11.0", "Num_Py": "2.1", "numpy": "2.0", "ray": None}


def test_processors_count_where_the_engine_runs_on_them() -> None:
    machine = {"cpus": 8, "numa_nodes": 2, "memory": {"total": 100}, "memory_limit": 60}
    raw = {**RAW, "host": machine}
    assert of({"device": "cpu"}, raw).machine == {"cpus": 8, "numa_nodes": 2, "memory_bytes": 60}
    assert of({}, raw).machine == {}
    assert of({"device": "cpu"}, {**raw, "host": {"cpus": 8}}).machine == {}


def test_stated_gpus_come_from_the_table_of_gpus() -> None:
    host = of({}, gpu={"name": "H100", "count": 2})
    assert [gpu["capability"] for gpu in host.gpus] == [[9, 0], [9, 0]]
    assert host.packages == {"numpy": "2.0"}


@pytest.mark.parametrize(
    ("flags", "raw", "gpu", "unknown"),
    [
        ({"model-path": "/data/x"}, RAW, {}, ("config.json of /data/x",)),
        ({"model-path": "/data/m"}, {**RAW, "gpus": []}, {}, ("the GPUs",)),
        ({"model-path": "/data/m", "device": "cpu"}, {**RAW, "gpus": []}, {}, ()),
        ({}, None, {"name": "Voodoo 2"}, ("the GPUs", "the model")),
        ({"model-path": "/data/m"}, {**RAW, "gpus": [{"name": "X", "memory.total": "[N/A]"}]}, {}, ("the GPUs",)),
    ],
)
def test_what_is_not_known_is_listed(flags: Any, raw: Any, gpu: Any, unknown: tuple[str, ...]) -> None:
    assert of(flags, raw, gpu).unknown == unknown


def test_folders_that_were_read_here_count_as_models() -> None:
    launch = Launch(engine="0.5.11", flags={"model-path": "m"})
    host = simulated(launch, {}, None, {"m": {"config": {"model_type": "llama"}}, "empty": {}})
    assert set(host.models) == {"m"}
