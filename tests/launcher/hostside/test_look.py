"""The state of runs on this machine, of one or of all, and who listens on the port of a run."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from launcher.hostside import look
from tests.support.ports import free_port
from tests.support.scripted_run import ScriptedRun, scripted_run

Start = Callable[..., ScriptedRun]
LISTEN = f"""exec {sys.executable} -S -E -c '
import socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[-1])))
print("up", flush=True)
time.sleep(600)' """


def looks(run: ScriptedRun, *names: str, port: int | None = None) -> list[dict[str, Any]]:
    """What the program reports, with the work folder of the run."""
    reports: list[dict[str, Any]] = look.main(
        {"work_dir": str(run.folder.parents[1]), "runs": list(names), "port": port}
    )
    return reports


def test_every_run_of_a_host_is_reported_with_its_state(start_run: Start) -> None:
    running = start_run("echo up; exec sleep 600")
    ended = start_run("echo é; exit 3")
    ended.until((ended.folder / "rc").exists)
    running.until(running.log.read_bytes)
    (ended.folder.parent / "zz-never-started").mkdir()
    by_name = {report["run"]: report for report in looks(running)}
    assert len(by_name) == 3
    assert by_name[running.id] == {
        "run": running.id, "state": "running", "code": None, "pid": by_name[running.id]["pid"], "log_bytes": 3,
    }  # fmt: skip
    assert by_name[running.id]["pid"] in running.pids()
    assert (by_name[ended.id]["state"], by_name[ended.id]["code"]) == ("exited", 3)
    assert by_name["zz-never-started"] == {
        "run": "zz-never-started", "state": "not-started", "code": None, "pid": None, "log_bytes": 0,
    }  # fmt: skip


def test_only_the_runs_that_were_named_are_reported(start_run: Start) -> None:
    run = start_run("exit 0")
    start_run("exit 0")
    assert [report["run"] for report in looks(run, run.id)] == [run.id]
    assert looks(run, "no-such-run")[0]["state"] == "not-started"


def test_a_host_without_a_work_folder_has_no_runs(tmp_path: Path) -> None:
    assert look.main({"work_dir": str(tmp_path / "missing"), "runs": []}) == []


def test_the_work_folder_may_begin_with_the_home_folder(tmp_path: Path) -> None:
    run = scripted_run(tmp_path, "exit 0")
    run.folder.mkdir(parents=True)
    home = os.path.relpath(tmp_path / "work", Path.home())
    assert [report["run"] for report in look.main({"work_dir": f"~/{home}", "runs": []})] == [run.id]


def test_a_listener_of_the_run_is_told_from_a_foreign_one(start_run: Start) -> None:
    port = free_port()
    run = start_run(f"{LISTEN} {port}")
    run.until(run.log.read_bytes)
    report = looks(run, run.id, port=port)[0]
    assert (report["listening"], report["foreign_listeners"]) == (True, [])
    with socket.create_server(("127.0.0.1", 0)) as server:
        report = looks(run, run.id, port=server.getsockname()[1])[0]
    assert (report["listening"], report["foreign_listeners"]) == (False, [os.getpid()])
