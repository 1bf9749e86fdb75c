"""`launch attach`: a run that was left alone is followed to its end, with the same output as its launch."""

from __future__ import annotations

import json

import pytest

from launcher.run.state import State
from launcher.run.store import Run, RunStore
from tests.support.command_line import Cli, stored
from tests.support.ports import free_port


def left_alone(engine: Cli, mode: str) -> Run:
    engine("profile", "fake", "--host", "local", "--fast", "--detach", "--env", f"FAKE_ENGINE={mode}")
    return RunStore().find("last")


@pytest.mark.slow
def test_a_run_that_crashed_meanwhile_is_explained(engine: Cli) -> None:
    run = left_alone(engine, "crash")
    code, out, err = engine("attach", run.id)
    assert (code, run.state) == (1, State.CRASHED)
    assert "model-directory-without-weights" in out
    assert "exited with 137" in err
    assert run.log.read_text().count("Cannot find any model weights") == 1


@pytest.mark.slow
def test_the_newest_run_is_followed_until_it_is_ready(engine: Cli) -> None:
    run = left_alone(engine, "healthy")
    code, out, err = engine("attach", "--no-validate", "--json")
    document = json.loads(out)
    assert (code, err, run.state) == (0, "", State.READY)
    assert (document["run"], document["state"], document["validation"]) == (run.id, "ready", None)


@pytest.mark.slow
def test_a_ready_run_is_validated(engine: Cli) -> None:
    run = left_alone(engine, "garbage")
    assert engine("attach", run.id)[0] == 1
    assert run.read("validation")["outcome"] == "fail"


@pytest.mark.parametrize("words", [("nothing",), ()])
def test_a_run_that_does_not_exist_is_refused(cli: Cli, words: tuple[str, ...]) -> None:
    code, out, err = cli("attach", *words)
    assert (code, out, "no run matches" in err) == (2, "", True)


def test_a_host_that_is_down_leaves_the_run_as_it_was(cli: Cli) -> None:
    run = stored(state="ready", host=f"nobody@127.0.0.1:{free_port()}")
    code, out, _ = cli("attach", run.id)
    assert (code, out, run.state) == (4, "", State.READY)
