"""A stop signals the engine first, the rest of the run later, and proves that nothing is left."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launcher import hostside
from launcher.hostside import stop_tree
from launcher.hostside.process import read_identity, run_pids, stop_was_asked
from launcher.transport.answers import output
from launcher.transport.local import LocalTransport
from tests.support.scripted_run import ScriptedRun, scripted_run

Start = Callable[..., ScriptedRun]
Rows = list[dict[str, Any]]
DRAINS = "trap 'echo drained; exit 0' TERM; echo up; while :; do sleep 0.05; done"


def stopped(run: ScriptedRun, drain: float = 20.0, **changes: object) -> tuple[Rows, dict[str, Any]]:
    """Stop the run; returns the steps and the result."""
    command = hostside.command("stop_tree", run.arguments(drain=drain, **changes))
    *steps, result = [json.loads(line) for line in output(LocalTransport(), command).splitlines()]
    return steps, result


def test_an_engine_that_drains_ends_without_force(start_run: Start) -> None:
    run = start_run(DRAINS)
    run.until(run.log.read_bytes)
    steps, result = stopped(run)
    assert [step["step"] for step in steps] == ["asked"]
    assert result == {
        "state": "exited", "code": 0, "forced": "", "survivors": [], "port_free": True, "gpu_pids": [],
    }  # fmt: skip
    assert run.log.read_text() == "up\ndrained\n"
    assert stop_was_asked(run.folder)


def test_children_are_not_signalled_while_the_engine_drains(start_run: Start) -> None:
    child = "trap 'echo child was signalled; exit' TERM; echo up; while :; do sleep 0.05; done"
    run = start_run(f'sh -c "{child}" & trap "kill -KILL $!; echo drained; exit 0" TERM; wait')
    run.until(run.log.read_bytes)
    _, result = stopped(run)
    assert (result["forced"], result["code"]) == ("", 0)
    assert run.log.read_text() == "up\ndrained\n"


def test_what_does_not_drain_in_time_is_ended_as_a_group(start_run: Start) -> None:
    """Everything here ends at the second SIGTERM."""
    run = start_run("trap 'trap - TERM' TERM; setsid sleep 600 & echo up; while :; do sleep 0.05; done")
    run.until(run.log.read_bytes)
    run.until(lambda: len(run.pids()) >= 3)
    steps, result = stopped(run, drain=0.2)
    assert [step["step"] for step in steps] == ["asked", "group"]
    assert {item["run"] for item in steps[1]["pids"]} == {run.id}
    assert (result["state"], result["code"], result["forced"], result["survivors"]) == ("exited", 143, "group", [])


def test_a_daemon_that_outlived_its_engine_is_ended(start_run: Start) -> None:
    run = start_run("setsid sh -c 'echo $$; exec sleep 600' & sleep 0.1; exit 7")
    run.until((run.folder / "rc").exists)
    steps, result = stopped(run)
    assert [step["step"] for step in steps] == ["group"]
    assert (result["state"], result["code"], result["survivors"]) == ("exited", 7, [])
    assert run_pids(run.id, None) == []
    assert not stop_was_asked(run.folder)  # it had ended by itself


def test_a_run_that_never_started_is_reported_as_such(tmp_path: Path) -> None:
    steps, result = stopped(scripted_run(tmp_path, "exit 0"))
    assert (steps, result["state"], result["survivors"]) == ([], "not-started", [])


def test_a_run_that_has_ended_needs_no_signal(start_run: Start) -> None:
    run = start_run("exit 5")
    run.until((run.folder / "rc").exists)
    run.until(lambda: not run.pids())
    steps, result = stopped(run)
    assert (steps, result["state"], result["code"], result["forced"]) == ([], "exited", 5, "")


def test_the_script_that_records_the_exit_code_is_spared(start_run: Start) -> None:
    run = start_run("exec sleep 600")
    pids = run_pids(run.id, read_identity(run.folder))
    [supervisor] = [pid for pid in pids if stop_tree.is_supervisor(pid, str(run.folder))]
    assert supervisor not in stop_tree.remaining_pids(run.id, read_identity(run.folder), str(run.folder))
    assert not stop_tree.is_supervisor(supervisor, str(run.folder.parent))
    assert not stop_tree.is_supervisor(os.getpid(), str(run.folder))


@pytest.mark.parametrize(("script", "pids"), [("printf '12\\nN/A\\n 7\\n'", {12, 7}), ("exit 9", set())])
def test_processes_on_gpus_are_those_that_the_driver_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, pids: set[int]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert stop_tree.gpu_pids() == set()
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    assert stop_tree.gpu_pids() == pids


def test_a_signal_to_a_process_that_is_gone_is_ignored() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    stop_tree.send_signal(process.pid, 15)


def test_a_port_that_stays_taken_is_reported(start_run: Start) -> None:
    run = start_run("exit 0")
    run.until((run.folder / "rc").exists)
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        _, result = stopped(run, port=foreign.getsockname()[1])
    assert result["port_free"] is False
