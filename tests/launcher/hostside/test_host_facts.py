"""Facts about a host, measured on this machine and with stand-ins for nvidia-smi, nvcc and the engine's interpreter."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launcher.hostside import host_facts
from launcher.secrets import is_secret

Program = Callable[[str, str], Path]
REPORT = {"packages": {"sglang": "0.5.23"}, "sglang": "/venv/sglang", "kernels": None, "executable": "/venv/python"}
GPU = "0, NVIDIA H200, GPU-1, 143771, 512, 143259, 9.0, 580.1, 00000000:5E:00.0, 0"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Write stand-ins for programs: program("nvidia-smi", "sh text"). No other program is on PATH."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SGLANG_LAUNCHER_CACHE", raising=False)

    def write(name: str, text: str) -> Path:
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    return write


def arguments(**changes: object) -> dict[str, Any]:
    plain = {"python": "", "env": {}, "work_dir": "~", "model": "", "draft": "", "port": 0, "host": ""}
    return {**plain, **changes}


def test_a_bare_host_is_measured_without_a_gpu_and_without_an_engine(program: Program) -> None:
    facts = json.loads(json.dumps(host_facts.main(arguments())))
    for missing in ("gpus", "engine", "topology", "port", "model", "libraries", "hub", "draft_model"):
        assert facts[missing] is None, missing
    assert facts["notes"] == ["nvidia-smi was not found"]
    assert facts["engine_tried"][0] == "python3: not found"
    host = facts["host"]
    assert 0 < host["memory"]["available"] <= host["memory"]["total"]
    assert 0 < host["disk"]["free"] <= host["disk"]["total"]
    assert host["work_dir"] == os.environ["HOME"]


def test_no_secret_of_the_environment_is_reported(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run stores the facts of its host."""
    monkeypatch.setenv("SGLANG_API_KEY", "sk-1")
    monkeypatch.setenv("HF_TOKEN", "hf-1")
    monkeypatch.setenv("SGLANG_STORE_SECRET", "s-1")
    monkeypatch.setenv("SGLANG_LOG_TOKENS", "1")
    monkeypatch.setenv("https_proxy", "http://eva:p-1@proxy.example:3128")
    monkeypatch.setenv("all_proxy", "eva:p-1/@@proxy:1")
    monkeypatch.setenv("NO_PROXY", "localhost")
    facts = host_facts.host(arguments())
    assert facts["hf_token"] is True
    assert facts["env"]["SGLANG_LOG_TOKENS"] == "1"
    assert facts["proxies"]["https_proxy"] == "http://•••@proxy.example:3128"
    assert facts["proxies"]["all_proxy"] == "•••@proxy:1"
    assert facts["proxies"]["NO_PROXY"] == "localhost"
    shown = json.dumps(facts)
    assert [word for word in ("sk-1", "hf-1", "s-1", "p-1") if word in shown] == []


@pytest.mark.parametrize(
    "name",
    [
        *("A_TOKEN", "TOKEN", "A_API_KEY", "APIKEY", "X_SECRET", "PASSWD", "X_PASSWORD", "A_CREDENTIALS"),
        "A_PRIVATE_KEY",
        *(
            "A_KEY",
            "A_TOKENS",
            "SECRETS_DIR",
            "SGLANG_KEYS",
            "MONKEY",
            "sglang_auth_key",
            "A_ACCESS_KEY",
            "A_SECRET_KEY",
            "A_PRIVATE_KEY",
        ),
    ],
)
def test_the_host_knows_secrets_by_the_names_that_the_launcher_does(name: str) -> None:
    assert bool(host_facts.SECRET_NAME.search(name)) is is_secret(name)


def test_each_gpu_is_a_row_of_named_values(program: Program) -> None:
    notes: list[str] = []
    program("nvidia-smi", f"echo '{GPU}'; echo '{GPU.replace('0, NVIDIA', '1, NVIDIA')}'; echo 'a warning, of sorts'")
    first, second = host_facts.gpus(notes)
    assert (first["index"], second["index"], first["name"], first["compute_cap"]) == ("0", "1", "NVIDIA H200", "9.0")
    assert first["memory.total"] == "143771"
    assert notes == []


@pytest.mark.parametrize(
    ("script", "note"),
    [
        ("echo 'No devices were found'; exit 6", "nvidia-smi: No devices were found"),
        ("echo 'cannot talk to the driver' >&2; exit 9", "nvidia-smi: cannot talk to the driver"),
        ("exit 0", "nvidia-smi: printed no GPU"),
    ],
)
def test_a_driver_that_lists_no_gpu_is_quoted(program: Program, script: str, note: str) -> None:
    notes: list[str] = []
    program("nvidia-smi", script)
    assert host_facts.gpus(notes) is None
    assert notes == [note]


def test_processes_on_gpus_are_described(program: Program) -> None:
    program("nvidia-smi", f"echo 'GPU-1, {os.getpid()}, 512'; echo 'GPU-1, [N/A], 3'; echo 'No running processes'")
    [process] = host_facts.gpu_processes()
    assert (process["gpu"], process["used_mib"], process["pid"]) == ("GPU-1", "512", os.getpid())
    assert process["command"]


def test_the_configured_interpreter_alone_is_tried(program: Program) -> None:
    program("python3", f"echo '{json.dumps(REPORT)}'")
    assert host_facts.engine_facts(arguments(python="/no/python")) == (None, ["/no/python: not found"])
    report, tried = host_facts.engine_facts(arguments())
    assert (report, tried) == (REPORT, [])


def test_an_engine_is_found_behind_output_of_its_interpreter(program: Program) -> None:
    path = program("engine", f"test \"$MODE\" = 1 || exit 1; echo 'a warning: [x]'; echo '{json.dumps(REPORT)}'")
    assert host_facts.engine_facts(arguments(python=str(path), env={"MODE": "1"}))[0] == REPORT


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'Traceback' >&2; echo 'ImportError: libcuda é' >&2; exit 1", "ImportError: libcuda é"),
        ("exit 0", "printed nothing"),
        ("echo '{}' | tr -d '{}'; echo", "printed nothing"),
        (f"echo '{json.dumps({**REPORT, 'sglang': None})}'", "sglang not installed"),
    ],
)
def test_each_interpreter_that_was_passed_over_has_its_reason(program: Program, script: str, reason: str) -> None:
    path = program("engine", f"PATH=/usr/bin:/bin\n{script}")
    assert host_facts.engine_facts(arguments(python=str(path))) == (None, [f"{path}: {reason}"])


def test_the_interpreter_that_make_engine_installed_is_a_candidate(program: Program, tmp_path: Path) -> None:
    assert host_facts.prepared() == []
    record = tmp_path / ".cache" / "sglang-launcher" / "engine.json"
    record.parent.mkdir(parents=True)
    record.write_text("{")
    assert host_facts.prepared() == []
    record.write_text('{"python": "/x/python"}')
    assert host_facts.prepared() == ["/x/python"]
    assert "/x/python: not found" in host_facts.engine_facts(arguments())[1]


def test_the_compiler_and_the_driver_report_their_cuda(program: Program) -> None:
    program("nvcc", "echo 'Cuda compilation tools, release 12.8, V12.8.93'")
    program("nvidia-smi", "echo '| NVIDIA-SMI 580.1  Driver Version: 580.1  CUDA Version: 13.0 |'")
    tools = host_facts.toolchain({"CUDA_HOME": "/opt/cuda"})
    assert (tools["nvcc"], tools["driver_cuda"], tools["cuda_home"]) == ("12.8", "13.0", "/opt/cuda")
    assert (tools["ninja"], tools["gcc"]) == (None, None)
    program("nvcc", "exit 1")
    assert host_facts.toolchain({})["nvcc"] is None


def test_a_compiler_in_cuda_home_is_found_without_path(program: Program, tmp_path: Path) -> None:
    (tmp_path / "cuda" / "bin").mkdir(parents=True)
    program("nvcc", "echo 'release 12.4, V'").rename(tmp_path / "cuda" / "bin" / "nvcc")
    assert host_facts.toolchain({"CUDA_HOME": str(tmp_path / "cuda")})["nvcc"] == "12.4"


def test_the_port_of_the_launch_is_reported_with_its_holders() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        facts = host_facts.port(arguments(port=port, host="127.0.0.1"))
    assert facts["free"] is False
    assert [holder["pid"] for holder in facts["holders"]] == [os.getpid()]
    assert host_facts.port(arguments(port=port, host="127.0.0.1")) == {"free": True, "holders": []}


def test_a_program_that_hangs_or_is_missing_has_no_output(program: Program) -> None:
    program("slow", "PATH=/usr/bin:/bin exec sleep 600")
    assert host_facts.run(["slow"], timeout=0.1) is None
    assert "timed out" in host_facts.run(["slow"], timeout=0.1, keep_errors=True)
    assert host_facts.run(["no-such-program"]) is None
    program("bytes", "printf '\\377'")
    assert host_facts.run(["bytes"]) == "\N{REPLACEMENT CHARACTER}"


def test_space_is_measured_where_the_work_folder_will_be(tmp_path: Path) -> None:
    assert host_facts.existing(str(tmp_path / "a" / "b")) == str(tmp_path)
    assert host_facts.existing("relative/path") == "/"
    assert host_facts.space(str(tmp_path / "missing")) is None


def test_a_setting_is_read_from_the_first_line_that_has_it(tmp_path: Path) -> None:
    path = tmp_path / "os-release"
    assert host_facts.first_line(path, "NAME") == ""
    path.write_text('# NAME=no\nPRETTY_NAME="Debian 12 = é"\nPRETTY_NAME=second\n')
    assert host_facts.first_line(path, "PRETTY_NAME") == "Debian 12 = é"
    assert host_facts.first_line(path, "NAME") == ""


def test_folders_may_name_the_home_folder_and_variables(program: Program, tmp_path: Path) -> None:
    assert host_facts.expand("~/m") == f"{tmp_path}/m"
    assert host_facts.expand("$HOME/m") == f"{tmp_path}/m"
    assert host_facts.expand("$NO_SUCH/m") == "$NO_SUCH/m"
