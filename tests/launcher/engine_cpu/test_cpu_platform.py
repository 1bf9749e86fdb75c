"""The CPU platform, loaded as the engine loads it: by the plug-in's answer, on top of the engine's own platform."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from launcher.engine_cpu import plugin

ENGINE = {
    "cpu.py": "class CpuSRTPlatform:\n    def __init__(self): self.prepared = True\n    device_name = 'cpu'\n",
    "device_mixin.py": "import enum\nPlatformEnum = enum.Enum('PlatformEnum', 'CPU OOT CUDA')\n",
    "interface.py": (
        "class PlatformCapabilities:\n    def __init__(self, graph_capture=True, quantization=True):\n"
        "        self.graph_capture, self.quantization = graph_capture, quantization\n"
    ),
}
"""The interface of sglang 0.5.23 (`sglang/srt/platforms`) that the platform uses."""
LOAD = """
import gc, importlib, json, sys
before = gc.get_threshold()
from sglang_launcher_cpu.plugin import platform
module, _, name = platform().partition(":")
kind = getattr(importlib.import_module(module), name)
made = kind()
print(json.dumps({
    "bases": [base.__name__ for base in kind.__mro__], "enum": kind._enum.name, "prepared": made.prepared,
    "graph_capture": made.capabilities.graph_capture, "quantization": made.capabilities.quantization,
    "attention": made.get_default_attention_backend(), "dispatch": made.get_dispatch_key_name(),
    "rarer": gc.get_threshold()[0] > 10 * before[0], "collects": gc.isenabled(),
    "kernels": [name for name in sys.modules if name.startswith(("sgl_kernel", "vllm", "launcher"))],
}))
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What an interpreter with the copy of the plug-in and a reduced engine reports."""
    folder = tmp_path_factory.mktemp("engine")
    platforms = folder / "sglang" / "srt" / "platforms"
    platforms.mkdir(parents=True)
    for name, text in ENGINE.items():
        (platforms / name).write_text(text)
    copy = folder / "sglang_launcher_cpu"
    copy.mkdir()
    for source in Path(plugin.__file__).parent.glob("*.py"):
        (copy / source.name).write_text(source.read_text("utf-8"), "utf-8")
    env = {**os.environ, plugin.SWITCH: "1", "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", LOAD], env=env, cwd=folder, stdout=subprocess.PIPE, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_the_platform_is_the_engine_s_own_for_cpus_and_prepared_like_it(loaded: dict[str, Any]) -> None:
    assert loaded["bases"][:2] == ["LauncherCpuPlatform", "CpuSRTPlatform"]
    assert loaded["prepared"] is True


def test_the_platform_is_out_of_tree_so_that_no_kernel_library_is_imported(loaded: dict[str, Any]) -> None:
    assert loaded["enum"] == "OOT"
    assert loaded["kernels"] == []


def test_everything_runs_in_torch_without_a_captured_graph(loaded: dict[str, Any]) -> None:
    assert (loaded["attention"], loaded["dispatch"]) == ("torch_native", "native")
    assert loaded["graph_capture"] is False
    assert loaded["quantization"] is True


def test_garbage_is_collected_rarely_but_still_collected(loaded: dict[str, Any]) -> None:
    assert (loaded["rarer"], loaded["collects"]) == (True, True)
