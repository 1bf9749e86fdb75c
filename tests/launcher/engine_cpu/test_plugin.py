"""The platform plug-in: when it returns a platform, and that this needs no engine."""

import subprocess
import sys
from pathlib import Path

import pytest

from launcher.engine_cpu import plugin


def test_no_platform_is_returned_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SGLANG_LAUNCHER_CPU", raising=False)
    assert plugin.platform() is None


@pytest.mark.parametrize("value", ["", "0", "true", "yes"])
def test_only_the_value_1_enables_it(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("SGLANG_LAUNCHER_CPU", value)
    assert plugin.platform() is None


def test_the_returned_module_and_class_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGLANG_LAUNCHER_CPU", "1")
    answer = plugin.platform()
    assert answer == "launcher.engine_cpu.cpu_platform:LauncherCpuPlatform"
    module, _, name = answer.partition(":")
    source = Path(plugin.__file__).with_name(module.rpartition(".")[2] + ".py").read_text("utf-8")
    assert f"class {name}(" in source


def test_the_returned_module_is_in_the_package_of_the_copy(tmp_path: Path) -> None:
    copy = tmp_path / "sglang_launcher_cpu"
    copy.mkdir()
    for source in Path(plugin.__file__).parent.glob("*.py"):
        (copy / source.name).write_text(source.read_text("utf-8"), "utf-8")
    code = "from sglang_launcher_cpu.plugin import platform; print(platform())"
    env = {"SGLANG_LAUNCHER_CPU": "1", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "sglang_launcher_cpu.cpu_platform:LauncherCpuPlatform", done.stderr


def test_the_plugin_imports_neither_the_engine_nor_the_launcher() -> None:
    code = (
        "import sys; from launcher.engine_cpu.plugin import platform; platform();"
        "print([m for m in sys.modules if m.split('.')[0] in ('sglang', 'torch')"
        " or m.startswith('launcher.') and not m.startswith('launcher.engine_cpu')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
