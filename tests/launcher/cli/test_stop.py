"""`launch stop`: which runs are stopped, and whether something is left of them."""

from __future__ import annotations

import json
import shutil
import socket

import pytest

from launcher.cli.stop import newest_active
from launcher.errors import RunNotFound
from launcher.run.state import State
from launcher.run.store import Run, RunStore
from tests.support.command_line import Cli, stored
from tests.support.ports import free_port


def launched(engine: Cli, mode: str) -> Run:
    engine("profile", "fake", "--host", "local", "--fast", "--detach", "--env", f"FAKE_ENGINE={mode}")
    return RunStore().find("last")


@pytest.mark.parametrize("words", [(), ("last", "--all"), ("--all",), ("nothing",)])
def test_exactly_one_run_or_all_of_a_host_must_be_named(cli: Cli, words: tuple[str, ...]) -> None:
    code, out, err = cli("stop", *words)
    assert (code, out, err.startswith("launch: ")) == (2, "", True)


def test_the_last_run_is_the_newest_that_may_still_run(cli: Cli) -> None:
    stored(minute=1, state="ready")
    newest = stored(minute=2, state="stalled")
    for minute, state in enumerate(("crashed", "refused", "stopped", "lost"), 3):
        stored(minute=minute, state=state)
    assert newest_active(RunStore()) == newest.id


def test_without_an_active_run_the_way_to_look_on_a_host_is_named(cli: Cli) -> None:
    stored(state="crashed")
    with pytest.raises(RunNotFound) as refused:
        newest_active(RunStore())
    assert "launch stop --all --host HOST" in refused.value.hint
    assert cli("stop", "last")[0] == 2


@pytest.mark.slow
def test_a_running_engine_is_stopped_and_nothing_is_left(engine: Cli) -> None:
    run = launched(engine, "hang")
    code, out, _ = engine("stop", "last", "--drain", "5")
    assert (code, run.state) == (0, State.STOPPED)
    assert out.startswith(f"{run.id}: stopped, exit code ")
    assert out.endswith("; no process, port or GPU memory is left\n")


@pytest.mark.slow
def test_a_second_stop_finds_nothing_to_do(engine: Cli) -> None:
    run = launched(engine, "usage")
    engine("stop", run.id)
    [row] = json.loads(engine("stop", run.id, "--json")[1])
    assert (row["run"], row["clean"], row["survivors"]) == (run.id, True, [])


@pytest.mark.slow
def test_a_port_that_stays_in_use_is_a_failed_stop(engine: Cli) -> None:
    run = launched(engine, "usage")
    engine("stop", run.id)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", run.plan.server_port))
        other.listen()
        code, out, _ = engine("stop", run.id)
    assert (code, "NOT clean, left over: the port is still in use" in out) == (1, True)


@pytest.mark.slow
def test_all_runs_of_a_host_are_stopped_even_those_of_another_machine(engine: Cli) -> None:
    run = launched(engine, "hang")
    kept = engine.folder / "kept"
    shutil.copytree(run.folder, kept)
    shutil.rmtree(run.folder)
    code, out, _ = engine("stop", "--all", "--host", "local", "--drain", "5", "--json")
    assert (code, [row["run"] for row in json.loads(out)]) == (0, [run.id])
    assert engine("stop", "--all", "--host", "local")[:2] == (0, "no run is running on local\n")
    assert json.loads(engine("stop", "--all", "--host", "local", "--json")[1]) == []
    shutil.copytree(kept, run.folder)


def test_a_run_that_was_refused_has_nothing_to_stop(engine: Cli) -> None:
    engine("profile", "fake", "--host", "local", "--fast", "--set", "no-such-flag=1")
    code, out, _ = engine("stop", RunStore().find("last").id)
    assert (code, out.endswith("was never started, so there is nothing to stop\n")) == (0, True)
    assert RunStore().find("last").state is State.REFUSED


def test_a_host_that_is_down_leaves_the_state_of_its_runs(cli: Cli) -> None:
    run = stored(state="ready", host=f"nobody@127.0.0.1:{free_port()}")
    assert cli("stop", run.id)[0] == 4
    assert run.state is State.READY
