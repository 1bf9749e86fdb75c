"""`launch profile` on the stand-in engine: what is printed, the exit code, and the report of the validation."""

from __future__ import annotations

import json

import pytest

from launcher.cli import profile
from launcher.flows.launch.launch import LaunchOutcome
from launcher.run.state import State
from launcher.run.store import RunStore
from tests.support.command_line import Cli, stored
from tests.support.validating import run as validated

LAUNCH = ("profile", "fake", "--host", "local", "--fast")


def test_a_launch_reports_its_verdict_as_a_page(cli: Cli) -> None:
    validation, _ = validated("bangs")
    outcome = LaunchOutcome(run=stored(host="gpu-box"), state=State.VALIDATED, reason="", validation=validation)
    profile.write_report(outcome, cli.folder / "report.html")
    page = (cli.folder / "report.html").read_text()
    assert ("gpu-box" in page, 'class="fail"' in page) == (True, True)


def test_a_launch_that_was_not_validated_leaves_no_report_and_says_so(
    cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    for run in (None, stored()):
        profile.write_report(LaunchOutcome(run=run, state=State.REFUSED, reason=""), cli.folder / "report.html")
        assert "report.html` was not written" in capsys.readouterr().err
    assert not (cli.folder / "report.html").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--html", "no/such/folder/r.html"),
        ("--html", "r.html", "--dry-run"),
        ("--html", "r.html", "--detach"),
        ("--html", "r.html", "--no-validate"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_the_launch(cli: Cli, words: tuple[str, ...]) -> None:
    code, _, err = cli("profile", "smollm2-135m-cpu", "--host", "local", *words)
    assert (code, "--html" in err) == (2, True), err
    assert list(RunStore().all()) == []


@pytest.mark.parametrize("words", [(), ("--host", "local", "--soak", "soon"), ("--host", "local", "--unset", "tp")])
def test_a_faulty_command_line_starts_nothing(engine: Cli, words: tuple[str, ...]) -> None:
    code, out, err = engine("profile", "fake", *words)
    assert (code, out, list(RunStore().all())) == (2, "", []), err


def test_a_dry_run_prints_the_plan_and_starts_nothing(engine: Cli) -> None:
    code, out, err = engine(*LAUNCH, "--dry-run", "--set", "page-size=16")
    assert (code, "nothing was started" in out) == (0, True), err
    assert "--page-size 16" in err
    assert list(RunStore().all()) == []


def test_an_error_finding_refuses_the_launch_and_names_itself(engine: Cli) -> None:
    code, out, err = engine(*LAUNCH, "--set", "no-such-flag=1")
    assert code == 2
    assert out.startswith("refused")
    assert "flag-unknown-to-engine" in err
    assert RunStore().find("last").state is State.REFUSED


@pytest.mark.slow
def test_no_check_starts_despite_findings_and_a_crash_is_diagnosed(engine: Cli) -> None:
    code, out, _ = engine(*LAUNCH, "--set", "no-such-flag=1", "--no-check", "--env", "FAKE_ENGINE=crash", "--json")
    document = json.loads(out)
    assert (code, document["state"], document["healthy"]) == (1, "crashed", False)
    assert document["diagnosis"]["cause"]["id"] == "model-directory-without-weights"
    assert (document["run"], document["validation"]) == (RunStore().find("last").id, None)


def test_json_is_the_only_output_of_a_launch(engine: Cli) -> None:
    code, out, err = engine(*LAUNCH, "--detach", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["state"] == "starting"


@pytest.mark.slow
def test_a_server_that_answers_nonsense_is_a_failed_launch_and_stays_one_in_a_replay(engine: Cli) -> None:
    code, out, err = engine(*LAUNCH, "--env", "FAKE_ENGINE=garbage", "--html", "report.html")
    assert code == 1
    assert out.startswith("verdict")
    assert "probes" in err and "FAIL" in err
    assert 'class="fail"' in (engine.folder / "report.html").read_text()
    _, _, err = engine("profile", "fake", "--host", f"replay:{RunStore().find('last').folder}")
    assert "(recorded)" in err


@pytest.mark.parametrize(
    ("state", "code"), [("planned", 0), ("starting", 0), ("ready", 0), ("crashed", 1), ("stalled", 5), ("refused", 2)]
)
def test_the_exit_code_is_that_of_the_state(state: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = LaunchOutcome(run=None, state=State(state), reason="because [of] ünïcode")
    assert profile.finish(outcome, as_json=False) == code
    assert "because [of] ünïcode" in capsys.readouterr().out


def test_a_run_that_crashed_during_a_failing_validation_is_judged_by_its_crash(cli: Cli) -> None:
    validation, _ = validated("bangs")
    outcome = LaunchOutcome(run=None, state=State.LOST, reason="", validation=validation)
    assert profile.finish(outcome, as_json=True) == 5
