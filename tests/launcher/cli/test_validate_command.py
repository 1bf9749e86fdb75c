"""`launch validate` and `launch baseline` as they are typed, against a stand-in server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from launcher.cli import app
from launcher.runs import Run, RunStore
from tests.support.desk import free_port
from tests.support.fake_server import serving
from tests.support.validating import run as validated


class Cli:
    """The command line, with a state folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        code = app.run("launch", app.LAUNCH, words)
        shown = self._capsys.readouterr()
        return code, shown.out, shown.err

    def run(self, **changes: Any) -> Run:
        """A run with a stored validation of suite standard."""
        from checks.validation import as_dict

        run = RunStore().create("p", datetime.now(UTC))
        run.update(state="validated", profile="p", host="local")
        found, _ = validated(*changes.pop("faults", ()), suite="standard", expect={"skip": ["abort"]})
        run.write("validation", as_dict(found))
        return run


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    monkeypatch.setenv("SGLANG_LAUNCHER_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    yield Cli(tmp_path, capsys)


def test_a_server_that_we_did_not_start_is_proved_with_report_and_soak(cli: Cli) -> None:
    with serving() as (port, _):
        code, out, err = cli("validate", f"http://127.0.0.1:{port}", "--soak", "0.2s", "--html", "report.html")
    assert code == 0, err
    assert "correct" in out
    assert "soak" in err
    assert f"http://127.0.0.1:{port}" in (cli.folder / "report.html").read_text()


def test_a_failing_server_is_exit_1_and_the_report_says_why(cli: Cli) -> None:
    with serving("bangs") as (port, _):
        code, out, _ = cli("validate", f"http://127.0.0.1:{port}", "--json", "--html", "report.html")
    assert code == 1
    assert json.loads(out)["outcome"] == "fail"
    assert 'class="fail"' in (cli.folder / "report.html").read_text()


def test_a_deeper_stage_that_is_not_installed_is_skipped_and_no_pass(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with serving() as (port, _):
        _, out, _ = cli("validate", f"http://127.0.0.1:{port}", "--json", "--deeper", "no-such-task-of-anybody")
    verdict = next(item for item in json.loads(out)["verdicts"] if item["id"].startswith("deeper:"))
    assert (verdict["outcome"], "pip install" in verdict["message"]) == ("skip", True)


@pytest.mark.parametrize(
    "words",
    [
        ("--suite", "smok"),
        ("--soak", "soon"),
        ("--baseline", "nothing"),
        ("--html", "no/such/folder/r.html"),
        ("--against", "gpu-box:30000"),
    ],
)
def test_what_does_not_exist_is_refused_before_anything_is_asked(cli: Cli, words: tuple[str, ...]) -> None:
    with serving() as (port, state):
        code, _, err = cli("validate", f"http://127.0.0.1:{port}", *words)
        asked = [path for path in state.paths if path != "/server_info"]
    assert code == 2, err
    assert asked == []


def test_a_validation_is_saved_shown_and_compared(cli: Cli) -> None:
    first, second = cli.run(), cli.run(faults=("greedy-moved",))
    code, out, _ = cli("baseline", "save", first.id, "prod", "--in", "repo")
    assert (code, out) == (0, "prod: repo/baselines/prod.json\n")
    assert cli("baseline", "save", first.id, "mine")[0] == 0
    assert "mine" in cli("baseline", "show")[1]
    assert "accuracy-word-problems" in cli("baseline", "show", "mine")[1]
    assert json.loads(cli("baseline", "show", "mine", "--json")[1])["run"] == first.id
    code, out, _ = cli("baseline", "compare", second.id, "mine", "--json")
    found = json.loads(out)
    assert {item["id"]: item["outcome"] for item in found["verdicts"]}["greedy-baseline"] == "fail"
    assert (code, found["outcome"], found["baseline"]) == (1, "fail", "mine")
    assert "greedy-baseline" in cli("baseline", "compare", second.id, first.id)[1]


def test_a_server_is_compared_with_a_saved_baseline(cli: Cli) -> None:
    cli("baseline", "save", cli.run().id, "prod")
    words = ("--suite", "standard", "--baseline", "prod", "--json")
    with serving("greedy-moved") as (port, _):
        code, out, _ = cli("validate", f"http://127.0.0.1:{port}", *words)
    assert code == 1
    assert {item["id"]: item["outcome"] for item in json.loads(out)["verdicts"]}["greedy-baseline"] == "fail"


@pytest.mark.parametrize(
    "words", [("sav",), ("save", "x"), ("compare", "x"), ("show", "a", "b"), ("show", "nothing"), ("save", "x", "y")]
)
def test_baseline_explains_what_it_does_not_understand(cli: Cli, words: tuple[str, ...]) -> None:
    code, _, err = cli("baseline", *words)
    assert code == 2
    assert err.startswith("launch: ")


def test_nobody_there_is_exit_1(cli: Cli) -> None:
    code, out, _ = cli("validate", f"http://127.0.0.1:{free_port()}", "--json")
    assert code == 1
    assert json.loads(out)["level"] == "not alive"
