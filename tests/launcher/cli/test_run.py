"""`launch run`: everything that is stored about one run, as it is stored."""

from __future__ import annotations

import json

import pytest

from launcher.run.state import ACTIVE, State
from launcher.run.store import Run, RunStore
from tests.support.command_line import Cli, stored, until
from tests.support.gate_recorded import CAUSE, crashed, validated

VALIDATION = {
    "outcome": "fail", "level": "ready", "summary": "1 of 2 probes [bad] failed", "verdicts": [
        {"id": "deeper:task[x]", "outcome": "fail", "message": "it said [/red]"},
        {"id": "prose", "outcome": "pass", "message": "ünïcode"},
    ],
}  # fmt: skip


def recorded(cli: Cli) -> Run:
    run = crashed(cli.folder / "state" / "runs" / "20261129-120000-chat-abcd", digest="0" * 12)
    run.write("plan", {**run.read("plan"), "command_line": "python -m sglang.launch_server --tp-size 2"})
    run.write("diagnosis", {"cause": CAUSE, "verdict": "cause", "sentence": "No weights in [/models/empty]."})
    run.write("findings", [{"id": "odd", "severity": "warning", "message": "is [odd]"}])
    run.write("validation", VALIDATION)
    run.append_event({"event": "Exited", "at": 12.34, "state": "exited", "code": 0, "why": "", "none": None})
    return run


def test_everything_about_a_run_is_shown_literally(cli: Cli) -> None:
    run = recorded(cli)
    code, out, err = cli("run", run.id)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"run      {run.id}  {run.folder}"
    assert lines[1].split() == ["state", "crashed"]
    assert lines[2] == "profile  chat (000000000000) on gpu-box, SGLang 0.5.20"
    assert lines[3] == "plan     python -m sglang.launch_server --tp-size 2"
    assert "warning  odd: is [odd]" in lines
    assert "    12.3s Exited: state exited, code 0" in lines
    assert f"cause    {CAUSE}: No weights in [/models/empty]." in lines
    assert "verdict  1 of 2 probes [bad] failed" in lines
    assert "         fail         deeper:task[x]: it said [/red]" in lines


def test_the_newest_run_is_the_default(cli: Cli) -> None:
    recorded(cli)
    newest = stored(minute=99)
    assert json.loads(cli("run", "--json")[1])["run"] == newest.id


def test_json_has_every_document_of_a_run(cli: Cli) -> None:
    run = recorded(cli)
    document = json.loads(cli("run", run.id, "--json")[1])
    assert (document["state"], document["exit"], document["folder"]) == ("crashed", 137, str(run.folder))
    assert document["validation"] == VALIDATION
    assert document["diagnosis"]["cause"] == CAUSE
    assert document["server_info"] is None


@pytest.mark.parametrize(
    ("verdict", "cause"), [("healthy", "none"), ("stopped", "none"), ("starting", "none"), ("unknown", "unknown")]
)
def test_a_run_in_which_nothing_failed_has_no_unknown_cause(cli: Cli, verdict: str, cause: str) -> None:
    run = stored(state="validated")
    run.write("diagnosis", {"cause": None, "verdict": verdict, "sentence": "It is as it is."})
    assert f"cause    {cause}: It is as it is.\n" in cli("run", run.id)[1]


def test_a_diagnosis_without_a_sentence_can_be_shown(cli: Cli) -> None:
    """A run that another release of the launcher recorded may lack a key."""
    run = crashed(cli.folder / "state" / "runs" / "20261129-120000-chat-abcd")
    run.write("plan", None)
    code, out, err = cli("run", run.id)
    assert (code, f"cause    {CAUSE}: " in out) == (0, True), err


def test_a_run_that_was_never_started_can_be_shown(cli: Cli) -> None:
    run = stored(state="planned", reason="waits for [gpu]")
    code, out, _ = cli("run", run.id)
    assert (code, "waits for [gpu]" in out, "plan " in out) == (0, True, False)


def test_a_validated_run_is_shown_with_its_level(cli: Cli) -> None:
    run = stored(state="validated", level="good enough")
    assert "validated (good enough)" in cli("run", run.id)[1]


def test_a_copied_folder_is_shown_whatever_its_name(cli: Cli) -> None:
    validated(cli.folder / "copy [old]", summary="s")
    code, out, _ = cli("run", "copy [old]")
    assert (code, out.startswith("run      copy [old]  copy [old]\n")) == (0, True)


@pytest.mark.parametrize("name", ["last", "nothing", ""])
def test_a_run_that_does_not_exist_is_refused(cli: Cli, name: str) -> None:
    code, out, err = cli("run", name)
    assert (code, out, "no run matches" in err) == (2, "", True)


def test_an_ambiguous_id_lists_what_it_matches(cli: Cli) -> None:
    runs = [stored(minute=minute).id for minute in (1, 2)]
    code, _, err = cli("run", "20261129")
    assert (code, all(run in err for run in runs)) == (2, True)


@pytest.mark.slow
def test_refresh_corrects_the_state_of_a_process_that_is_gone(engine: Cli) -> None:
    engine("profile", "fake", "--host", "local", "--fast", "--detach", "--env", "FAKE_ENGINE=usage")
    run = RunStore().find("last")
    assert run.state in ACTIVE
    until((engine.folder / "work" / "runs" / run.id / "rc").exists)
    assert run.state in ACTIVE
    document = json.loads(engine("run", "--refresh", "--json")[1])
    assert (document["state"], document["exit"], run.state) == ("crashed", 2, State.CRASHED)
