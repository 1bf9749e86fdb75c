"""A run on its host: started once, looked at, stopped; refusals and failures say what to do."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from launcher.errors import HostCommandFailed, PlanRefused
from launcher.run import remote
from launcher.run.frames import Ended, FrameReader, LogBytes
from launcher.run.store import Run
from launcher.transport.base import Command, Result
from launcher.transport.local import LocalStream, LocalTransport
from tests.support.scripted_run import ScriptedRun, scripted_run

Start = Callable[..., ScriptedRun]
HOST = LocalTransport()


def test_a_run_is_started_followed_and_stopped(start_run: Start) -> None:
    run = start_run("echo up; trap 'exit 0' TERM; while :; do sleep 0.05; done")
    run.until(run.log.read_bytes)
    look = remote.look(HOST, run.run)
    assert (look.run, look.state, look.log_bytes, look.listening) == (run.id, "running", 3, False)
    steps: list[str] = []
    stopped = remote.stop(HOST, run.run, drain=20, say=steps.append)
    assert (stopped.state, stopped.code, stopped.forced, stopped.clean) == ("exited", 0, "", True)
    assert len(steps) == 1
    assert f"pid {look.pid}" in steps[0]
    assert remote.look(HOST, run.run).code == 0


def test_following_begins_at_the_offset(start_run: Start) -> None:
    run = start_run("echo one; echo two")
    reader = FrameReader()
    frames = [frame for chunk in HOST.stream(remote.follow_command(run.run, 4)) for frame in reader.feed(chunk)]
    assert b"".join(frame.data for frame in frames if isinstance(frame, LogBytes)) == b"two\n"
    assert frames[-1] == Ended("exited", 0)


def test_secrets_arrive_in_files_and_not_in_the_script(tmp_path: Path) -> None:
    run = scripted_run(tmp_path, 'test "$HF_TOKEN" = "hf é" && echo same; exec sleep 600', secret_env=("HF_TOKEN",))
    remote.start(HOST, run.run, {"HF_TOKEN": "hf é"}, systemd=False)
    run.until(run.log.read_bytes)
    run.kill()
    assert run.log.read_text() == "same\n"
    assert "hf é" not in (run.folder / "launch.sh").read_text()


def test_a_run_of_another_machine_is_listed_and_stopped_by_its_folder(start_run: Start) -> None:
    run = start_run("exec sleep 600")
    work = str(run.folder.parents[1])
    assert [look.run for look in remote.look_at_all(HOST, work)] == [run.id]
    stopped = remote.stop_foreign(HOST, run.id, work, drain=20)
    assert (stopped.state, stopped.code, stopped.survivors) == ("exited", 143, ())
    assert not run.pids()


def test_a_port_of_another_run_is_refused_with_the_command_that_stops_it(start_run: Start, tmp_path: Path) -> None:
    first = start_run("exec sleep 600")
    with pytest.raises(PlanRefused, match=f"run {first.id} already uses port {first.port}") as caught:
        start_run("exit 0", server_port=first.port)
    assert caught.value.hint == f"`launch stop {first.id}`"


def test_a_port_of_a_foreign_process_is_refused_with_the_way_out(start_run: Start) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(PlanRefused, match=r"is taken by pid \d+ \(") as caught,
    ):
        start_run("exit 0", server_port=server.getsockname()[1])
    assert "--set port=" in caught.value.hint


def test_a_second_start_of_a_run_is_refused(start_run: Start) -> None:
    run = start_run("exit 0")
    run.until(lambda: not run.pids())
    with pytest.raises(PlanRefused, match="run-exists"):
        run.start()


def test_a_host_without_python_is_reported_with_the_setting_that_helps(run: Run) -> None:
    class Bare(LocalTransport):
        def run(self, command: Command) -> Result:
            return super().run(replace(command, argv=("sh", "-c", "exit 127")))

    with pytest.raises(HostCommandFailed, match="no python3 was found") as caught:
        remote.look(Bare(), run)
    assert "hosts.yaml" in caught.value.hint


class Scripted(LocalTransport):
    """A host on which the program that stops a run is this sh text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def stream(self, command: Command) -> LocalStream:
        return super().stream(Command(argv=("sh", "-c", self.text), label=command.label))


def test_a_stop_that_fails_is_an_error_with_the_last_line_of_the_host(run: Run) -> None:
    with pytest.raises(HostCommandFailed, match=r"`stop_tree` failed on `local` \(exit 3\): no permission"):
        remote.stop(Scripted("echo Traceback >&2; echo 'no permission' >&2; exit 3"), run)


@pytest.mark.parametrize("text", ["exit 0", 'echo \'{"step": "asked", "pid": 1, "drain": 1}\''])
def test_a_stop_without_a_result_is_not_a_success(run: Run, text: str) -> None:
    with pytest.raises(HostCommandFailed, match="did not report the result"):
        remote.stop(Scripted(text), run)


def test_the_result_of_a_stop_is_found_behind_a_greeting(run: Run) -> None:
    result = '{"state": "exited", "code": 0, "forced": "kill", "survivors": [], "port_free": false, "gpu_pids": [7]}'
    stopped = remote.stop(Scripted(f"echo Welcome; printf '%s' '{result[:40]}'; sleep 0.1; echo '{result[40:]}'"), run)
    assert (stopped.forced, stopped.port_free, stopped.gpu_pids) == ("kill", False, (7,))
    assert not stopped.clean


@pytest.mark.parametrize("left", [{"survivors": ({"pid": 1},)}, {"port_free": False}, {"gpu_pids": (1,)}])
def test_whatever_is_left_makes_a_stop_unclean(left: dict[str, object]) -> None:
    clean = remote.Stopped(state="exited", code=0, forced="", survivors=(), port_free=True, gpu_pids=())
    assert clean.clean
    assert not replace(clean, **left).clean


def test_holders_are_named_by_run_or_by_command() -> None:
    text = remote.holders_text([{"run": "r1", "pid": 1}, {"run": "", "pid": 2, "command": "x" * 200}])
    assert text == f"run r1 (pid 1; `launch stop r1`), pid 2 ({'x' * 80})"
    assert remote.holders_text([]) == "a process that this user cannot see"


def test_facts_are_those_of_the_host() -> None:
    arguments = {"python": "/no/python", "env": {}, "work_dir": "/", "model": "", "draft": "", "port": 0, "host": ""}
    before = datetime.now(UTC).timestamp()
    facts = remote.host_facts(HOST, arguments)
    assert facts["host"]["time"] >= before
    assert facts["engine"] is None
