"""A run is started once, in its own session, with its files private; a taken port is refused with its holder."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launcher import hostside
from launcher.hostside.process import read_identity, stat_fields
from launcher.plan.launch_script import launch_script
from launcher.transport.answers import ask
from launcher.transport.local import LocalTransport
from tests.support.scripted_run import ScriptedRun, scripted_run

Start = Callable[..., ScriptedRun]


def answer(run: ScriptedRun, **changes: object) -> dict[str, Any]:
    """What the program reports; `changes` replace its arguments."""
    arguments = run.arguments(
        lock=str(lock_of(run)), files={"launch.sh": [launch_script(run.run.plan, run.id), 0o700]}, systemd=False
    )
    return dict(ask(LocalTransport(), hostside.command("start", {**arguments, **changes})))


def lock_of(run: ScriptedRun) -> Path:
    return run.folder.parents[1] / "locks" / f"port-{run.port}.lock"


def test_the_engine_runs_in_a_session_of_its_own_without_input(start_run: Start) -> None:
    run = start_run("cat; echo done; exec sleep 600")
    run.until(lambda: run.log.read_bytes() == b"done\n")
    _, parent, _, session = stat_fields(read_identity(run.folder)[0])[:4]
    assert session == parent  # launch.sh


def test_the_identity_of_the_engine_is_reported(tmp_path: Path) -> None:
    run = scripted_run(tmp_path, "exec sleep 600")
    started = answer(run)["started"]
    assert (started["pid"], started["start"], started["boot"]) == read_identity(run.folder)
    run.kill()


def test_files_are_private_and_keep_any_text(tmp_path: Path) -> None:
    run = scripted_run(tmp_path, "exit 0")
    text = "export KEY='é💥\n'\n"
    files = {"launch.sh": [launch_script(run.run.plan, run.id), 0o700], "secrets.env": [text, 0o600]}
    answer(run, files=files)
    assert (run.folder / "secrets.env").read_text("utf-8") == text
    modes = {path.name: path.stat().st_mode & 0o777 for path in run.folder.iterdir()}
    assert (modes["launch.sh"], modes["secrets.env"], modes["supervisor.log"]) == (0o700, 0o600, 0o600)
    assert run.folder.stat().st_mode & 0o077 == 0


def test_the_engine_holds_the_lock_of_its_port_until_it_ends(start_run: Start) -> None:
    first = start_run("exec sleep 600")
    second = scripted_run(first.folder.parents[2], "exit 0", server_port=first.port)
    refused = answer(second)
    assert (refused["refused"], refused["run"]) == ("port-locked", first.id)
    assert not second.folder.exists()
    first.kill()
    first.until(lambda: not first.pids())
    assert "started" in answer(second)


def test_the_lock_names_its_latest_run_alone(tmp_path: Path) -> None:
    run = scripted_run(tmp_path, "exit 0")
    lock_of(run).parent.mkdir(parents=True)
    lock_of(run).write_text("x" * 200)
    answer(run)
    assert lock_of(run).read_text() == run.id


def test_a_lock_without_a_name_in_it_still_refuses(tmp_path: Path) -> None:
    run = scripted_run(tmp_path, "exit 0")
    lock_of(run).parent.mkdir(parents=True)
    with lock_of(run).open("wb") as lock:
        lock.write(b"\xff")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = answer(run)
    assert (refused["refused"], refused["run"], refused["holders"]) == ("port-locked", "\N{REPLACEMENT CHARACTER}", [])


def test_a_port_of_a_foreign_process_is_refused_with_its_pid(tmp_path: Path) -> None:
    run = scripted_run(tmp_path, "exit 0")
    with socket.create_server(("127.0.0.1", run.port)):
        refused = answer(run)
    assert (refused["refused"], [holder["pid"] for holder in refused["holders"]]) == ("port-in-use", [os.getpid()])
    assert not run.folder.exists()


def test_the_same_run_is_not_started_twice(start_run: Start) -> None:
    run = start_run("exit 0")
    run.until((run.folder / "rc").exists)
    run.until(lambda: answer(run) == {"refused": "run-exists"})


@pytest.mark.parametrize("script", ["echo 'no flock: é' >&2; echo 73 >rc", "printf '\\377' >&2; echo 1 >rc"])
def test_a_script_that_does_not_start_the_engine_is_quoted(tmp_path: Path, script: str) -> None:
    run = scripted_run(tmp_path, "exit 0")
    refused = answer(run, files={"launch.sh": [script, 0o700]})
    assert refused["refused"] == "did-not-start"
    assert refused["detail"].strip() in ("no flock: é", "\N{REPLACEMENT CHARACTER}")


def test_a_systemd_service_starts_without_the_lock_of_this_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for systemd-run shows its arguments, then starts the script as the service manager would."""
    stand_in = tmp_path / "bin" / "systemd-run"
    stand_in.parent.mkdir()
    stand_in.write_text('#!/bin/sh\necho "$@" >words\nshift 7\nexec "$@"\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stand_in.parent}:{os.environ['PATH']}")
    run = scripted_run(tmp_path, "exec sleep 600")
    assert "started" in answer(run, systemd=True)
    words = (run.folder / "words").read_text().split()
    assert f"sglang-launcher-{run.id}" in words
    assert words[-4:] == ["--working-directory", str(run.folder), "sh", "launch.sh"]
    run.kill()
