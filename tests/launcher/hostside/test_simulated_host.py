"""The pieces of a simulated host, each alone; `tests/launcher/twin/test_twin.py` runs them together."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from launcher.hostside import simulated_host
from launcher.hostside.simulated_host import visible, write_nvidia_smi
from launcher.hostside.stand_ins import Doubts

GPUS = [{"name": "a", "memory_mib": 10}, {"name": "b", "memory_mib": 20}]


@pytest.mark.parametrize(
    ("wanted", "names"),
    [(None, "ab"), ("1", "b"), ("1,0", "ba"), ("0,7,1", "a"), ("3", ""), ("-1", ""), ("", ""), ("GPU-1234", "a")],
)
def test_a_variable_chooses_gpus_as_cuda_does(wanted: str | None, names: str) -> None:
    assert "".join(str(gpu["name"]) for gpu in visible(GPUS, wanted)) == names


def test_the_program_answers_the_question_about_memory_only(tmp_path: Path) -> None:
    write_nvidia_smi(str(tmp_path), GPUS)
    program = str(tmp_path / "nvidia-smi")
    asked = subprocess.run([program, "--query-gpu=memory.total"], capture_output=True, text=True, check=True)
    assert asked.stdout.split() == ["10", "20"]
    assert subprocess.run([program, "-L"], capture_output=True, check=False).returncode == 9


def test_paths_of_the_host_are_assumed_to_exist_and_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("exists", "isfile", "isdir", "lexists"):
        monkeypatch.setattr(simulated_host.os.path, name, getattr(simulated_host.os.path, name))
    doubts = Doubts()
    simulated_host.assume_paths(["/data/t"], doubts)
    assert simulated_host.os.path.isfile("/data/t")
    assert not simulated_host.os.path.exists("/data/other")
    assert doubts.texts == ["the engine asks whether /data/t exists"]
