"""Facts from /proc about real processes: who they are, whether they run, and which of them belong to a run."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from launcher.hostside.process import (
    boot_id,
    describe,
    is_alive,
    listeners,
    mark_stop,
    port_is_free,
    read_exit,
    read_identity,
    run_pids,
    run_state,
    slurp,
    start_time,
    stat_fields,
    stop_was_asked,
)
from tests.support.command_line import until

RUN = "20261129-120000-probe-0a1b"
Spawn = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start processes in sessions of their own; they are killed afterwards."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*words: str, **environment: str) -> subprocess.Popen[bytes]:
        env = {"PATH": os.environ["PATH"], **environment}
        process = subprocess.Popen(
            words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def identity_of(pid: int) -> tuple[int, int, str]:
    return pid, start_time(pid), boot_id()


@pytest.mark.parametrize("name", ["a) Z 1 (b", "two words", "éééééééé", ")"])
def test_the_name_of_a_process_does_not_shift_its_fields(tmp_path: Path, spawn: Spawn, name: str) -> None:
    """Linux cuts names after 15 bytes, so that one may end inside a character."""
    program = tmp_path / name
    shutil.copy(shutil.which("sleep") or "", program)
    process = spawn("sh", "-c", 'echo up; exec "$0" 60', str(program))
    first_line(process)
    while stat_fields(process.pid)[0] not in "S":
        pass
    assert int(stat_fields(process.pid)[1]) == os.getpid()
    assert is_alive(identity_of(process.pid))


def test_a_zombie_is_not_alive(spawn: Spawn) -> None:
    process = spawn("sleep", "60")
    identity = identity_of(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert stat_fields(process.pid)[0] == "Z"
    assert start_time(process.pid) is None
    assert not is_alive(identity)


def test_a_process_of_another_start_or_another_boot_is_not_the_same(spawn: Spawn) -> None:
    pid, start, boot = identity_of(spawn("sleep", "60").pid)
    assert is_alive((pid, start, boot))
    assert not is_alive((pid, start + 1, boot))
    assert not is_alive((pid, start, "another-boot"))
    assert not is_alive(None)


@pytest.mark.parametrize("content", [None, b"", b"12", b"12 x boot", b"1 2 boot more", b"\xff\xfe 1 2"])
def test_an_unreadable_identity_is_none(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "pid").write_bytes(content)
    assert read_identity(tmp_path) is None


@pytest.mark.parametrize(
    ("content", "code"), [(b"0\n", 0), (b"137\n", 137), (b"-9\n", -9), (b"", None), (b"\n", None), (b"x", None)]
)
def test_an_exit_code_is_read_when_it_is_a_number(tmp_path: Path, content: bytes, code: int | None) -> None:
    assert read_exit(tmp_path) is None
    (tmp_path / "rc").write_bytes(content)
    assert read_exit(tmp_path) == code


def test_a_run_goes_from_not_started_through_running_to_its_end(tmp_path: Path, spawn: Spawn) -> None:
    assert run_state(tmp_path) == ("not-started", None)
    process = spawn("sleep", "60")
    (tmp_path / "pid").write_text("{} {} {}\n".format(*identity_of(process.pid)))
    assert run_state(tmp_path) == ("running", None)
    process.kill()
    process.wait()
    assert run_state(tmp_path) == ("vanished", None)
    (tmp_path / "rc").write_text("9\n")
    assert run_state(tmp_path) == ("exited", 9)


def test_a_request_to_stop_is_remembered_in_the_folder(tmp_path: Path) -> None:
    assert not stop_was_asked(tmp_path)
    mark_stop(tmp_path)
    mark_stop(tmp_path)
    assert stop_was_asked(tmp_path)


def test_processes_belong_to_a_run_by_mark_descent_or_session(spawn: Spawn) -> None:
    """The main process has no mark: it starts a child, and a process that its parent leaves behind in the session."""
    main = spawn("sh", "-c", "sleep 61 & (sleep 62 & echo $!); exec sleep 60")
    orphan = int(first_line(main))
    daemon = spawn("sleep", "60", SGLANG_LAUNCHER_RUN=RUN)
    foreign = spawn("sleep", "60", SGLANG_LAUNCHER_RUN=f"{RUN}0")
    until(lambda: len(run_pids(RUN, identity_of(main.pid))) == 4)  # once the inner shell, which wrote the pid, is gone
    pids = run_pids(RUN, identity_of(main.pid))
    assert {main.pid, orphan, daemon.pid} <= set(pids)
    assert foreign.pid not in pids


def test_the_descendants_of_a_marked_process_belong_to_its_run(spawn: Spawn) -> None:
    parent = spawn("sh", "-c", "env -i setsid sh -c 'echo $$; exec sleep 60' & wait", SGLANG_LAUNCHER_RUN=RUN)
    child = int(first_line(parent))
    assert set(run_pids(RUN, None)) == {parent.pid, child}


def test_a_reused_pid_brings_no_process_into_a_run(spawn: Spawn) -> None:
    pid, start, boot = identity_of(spawn("sleep", "60").pid)
    assert run_pids(RUN, (pid, start + 1, boot)) == []


def test_the_program_that_asks_is_not_part_of_the_run() -> None:
    code = f"from launcher.hostside.process import run_pids; print(run_pids({RUN!r}, None))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "SGLANG_LAUNCHER_RUN": RUN}, stdout=subprocess.PIPE, check=True
    )
    assert done.stdout == b"[]\n"


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_listening_port_is_taken_and_its_holder_is_known(family: socket.AddressFamily, address: str) -> None:
    with socket.socket(family) as server:
        try:
            server.bind((address, 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
        port = server.getsockname()[1]
        assert listeners(port) == []  # bound, but not listening
        server.listen()
        assert not port_is_free(address, port)
        assert listeners(port) == [os.getpid()]
        client = socket.create_connection((address, port))
        accepted, _ = server.accept()
    with accepted, client:
        assert listeners(port) == []  # a connection that outlives its listener
    assert port_is_free(address, port)


def test_an_address_of_another_machine_cannot_be_bound() -> None:
    assert not port_is_free("192.0.2.1", 0)


def test_a_process_is_described_by_its_command_and_its_run(spawn: Spawn) -> None:
    process = spawn("sh", "-c", 'echo up; sleep 60; : "$0"', "é" * 200, SGLANG_LAUNCHER_RUN=RUN)
    first_line(process)
    description = describe(process.pid)
    assert (description["pid"], description["run"]) == (process.pid, RUN)
    assert description["command"].startswith("sh -c echo up")
    assert len(description["command"]) == 160


def test_a_process_without_a_run_or_without_a_life_is_described_as_well(spawn: Spawn) -> None:
    process = spawn("sleep", "60")
    assert describe(process.pid)["run"] == ""
    process.kill()
    process.wait()
    assert describe(process.pid) == {"pid": process.pid, "command": "", "run": ""}


def test_a_description_survives_bytes_that_are_not_text(spawn: Spawn) -> None:
    hostile = b"\xff\x1b[2J".decode("utf-8", "surrogateescape")
    process = spawn("sh", "-c", "echo up; sleep 60; :", hostile, SGLANG_LAUNCHER_RUN=hostile)
    first_line(process)
    assert describe(process.pid)["run"] == "\N{REPLACEMENT CHARACTER}\x1b[2J"


def test_an_unreadable_file_is_empty(tmp_path: Path) -> None:
    assert slurp(tmp_path / "missing") == b""
    assert slurp(tmp_path) == b""
