"""`launch logs`: the log of a run as the bytes that were written, local or followed on its host."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from launcher.plan.launch_plan import LaunchPlan
from launcher.run import log_copy
from launcher.run.store import Run, RunStore
from tests.support.command_line import Cli, stored, until
from tests.support.paths import ROOT
from tests.support.ports import free_port

DETACHED = ("profile", "fake", "--host", "local", "--fast", "--detach")
NOT_UTF8 = b"caf\xe9 \xff\xfe\n"


def printed(*words: str) -> tuple[int, bytes, bytes]:
    """What a process of its own prints: the capture of the test decodes text."""
    code = "from launcher.cli.app import launch; launch()"
    command = [sys.executable, "-c", code, "logs", *words]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
    return done.returncode, done.stdout, done.stderr


def test_the_local_copy_is_printed_byte_by_byte(cli: Cli) -> None:
    run = stored()
    text = NOT_UTF8 + b"progress 1\rprogress 2\n" + b"x" * (3 << 20) + b"without an end"
    run.log.write_bytes(text)
    assert printed(run.id) == (0, text, b"")


def test_a_run_without_a_local_log_names_the_command_that_gets_one(cli: Cli) -> None:
    run = stored(state="planned")
    code, out, err = cli("logs", run.id)
    assert (code, out) == (0, "")
    assert f"`launch logs -f {run.id}`" in err and "planned" in err


def test_an_empty_log_is_printed_as_such(cli: Cli) -> None:
    run = stored()
    run.log.touch()
    assert cli("logs", run.id) == (0, "", "")


@pytest.mark.parametrize("words", [("nothing",), ("nothing", "-f"), ()])
def test_a_run_that_does_not_exist_is_refused(cli: Cli, words: tuple[str, ...]) -> None:
    code, out, err = cli("logs", *words)
    assert (code, out, "no run matches" in err) == (2, "", True)


def ended(engine: Cli) -> Run:
    """A run that nobody follows and whose log is not UTF-8."""
    engine(*DETACHED, "--env", "FAKE_ENGINE=usage")
    run = RunStore().find("last")
    folder = engine.folder / "work" / "runs" / run.id
    until((folder / "rc").exists)
    with (folder / "server.log").open("ab") as log:
        log.write(NOT_UTF8 + b"no newline")
    return run


@pytest.mark.slow
def test_a_run_is_followed_to_its_end_whatever_its_log_contains(engine: Cli) -> None:
    run = ended(engine)
    code, out, err = printed("-f", run.id)
    assert (code, err) == (0, b"exited, exit code 2\n")
    assert out.endswith(b"unrecognized arguments: --no-such-flag\n" + NOT_UTF8 + b"no newline\n")
    assert run.log.read_bytes().endswith(NOT_UTF8 + b"no newline")
    assert printed("-f", run.id)[1].count(b"unrecognized arguments") == 1


def test_a_connection_that_stays_lost_is_an_error_with_its_reason(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_copy, "RETRY_SECONDS", ())
    monkeypatch.setenv("PATH", "/nowhere")  # the host has no interpreter any more
    run = stored(state="ready")
    plan = LaunchPlan(profile="p", digest="d", host="local", engine="0.5.23", python="/no/such/python3",
                      work_dir=str(cli.folder / "work"), flags={}, env={}, server_port=30000)  # fmt: skip
    run.write("plan", plan.to_json())
    code, out, err = cli("logs", "-f", run.id)
    assert (code, out, err.splitlines()[-1].startswith("connection lost: ")) == (4, "", True), err


def test_a_host_that_cannot_be_reached_is_an_error_after_the_local_copy(cli: Cli) -> None:
    run = stored(host=f"nobody@127.0.0.1:{free_port()}", log="what is known\n")
    code, out, _ = cli("logs", "-f", run.id)
    assert (code, out) == (4, "what is known\n")
