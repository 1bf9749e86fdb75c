"""`launch baseline` as it is typed: saved, shown, compared with a run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from launcher.run.store import Run
from tests.support.command_line import Cli, stored


def judged(outcome: str = "pass", samples: dict[str, Any] | None = None, minute: int = 0, **more: Any) -> Run:
    """Store a run with the validation of one probe."""
    run = stored(state="validated", minute=minute)
    verdicts = [{"id": "prose", "outcome": outcome, "message": "ünïcode [x]"}]
    validation = {"suite": "smoke", "outcome": outcome, "level": "ready", "summary": "one probe", "model": "m",
                  "engine": "0.5.23", "started": "now", "verdicts": verdicts, "samples": samples or {}}  # fmt: skip
    run.write("validation", {**validation, **more})
    return run


@pytest.mark.slow
def test_a_validation_is_saved_shown_and_compared(cli: Cli) -> None:
    first, second = cli.run(), cli.run(faults=("greedy-moved",))
    code, out, _ = cli("baseline", "save", first.id, "prod", "--in", "repo")
    assert (code, out) == (0, "prod: repo/baselines/prod.json\n")
    assert cli("baseline", "save", first.id, "mine")[0] == 0
    assert "mine" in cli("baseline", "show")[1]
    assert "accuracy-word-problems" in cli("baseline", "show", "mine")[1]
    assert json.loads(cli("baseline", "show", "mine", "--json")[1])["run"] == first.id
    code, out, _ = cli("baseline", "compare", second.id, "mine", "--json")
    comparison = json.loads(out)
    assert {item["id"]: item["outcome"] for item in comparison["verdicts"]}["greedy-baseline"] == "fail"
    assert (code, comparison["outcome"], comparison["baseline"]) == (1, "fail", "mine")
    assert "greedy-baseline" in cli("baseline", "compare", second.id, first.id)[1]


@pytest.mark.parametrize(
    "words", [("sav",), ("save", "x"), ("compare", "x"), ("show", "a", "b"), ("show", "nothing"), ("save", "x", "y")]
)
def test_invalid_arguments_of_baseline_are_refused(cli: Cli, words: tuple[str, ...]) -> None:
    code, _, err = cli("baseline", *words)
    assert code == 2
    assert err.startswith("launch: ")


def test_a_run_that_was_never_validated_cannot_be_a_baseline(cli: Cli) -> None:
    code, _, err = cli("baseline", "save", stored().id, "prod")
    assert (code, "was never validated" in err) == (2, True)
    assert not (cli.folder / "state" / "baselines").exists()


def test_a_baseline_that_cannot_be_compared_is_saved_with_a_note(cli: Cli) -> None:
    code, out, err = cli("baseline", "save", judged().id, "prod")
    assert (code, out.startswith("prod: ")) == (0, True)
    assert "no samples to compare" in err


def test_saving_a_failed_validation_warns(cli: Cli) -> None:
    code, _, err = cli("baseline", "save", judged("fail").id, "prod")
    assert (code, "warning: the validation of this run failed: one probe" in err) == (0, True)
    assert "warning" not in cli("baseline", "save", judged().id, "good")[2]


def test_a_script_learns_where_a_baseline_was_saved(cli: Cli) -> None:
    run = judged("fail")
    code, out, err = cli("baseline", "save", run.id, "prod", "--in", "here", "--json")
    assert (code, json.loads(out), err) == (0, {"name": "prod", "path": "here/baselines/prod.json", "run": run.id}, "")


def test_without_baselines_the_next_command_is_named(cli: Cli) -> None:
    assert cli("baseline", "show")[:2] == (0, "")
    assert "launch baseline save" in cli("baseline", "show")[2]
    assert json.loads(cli("baseline", "show", "--json")[1]) == []


def test_the_list_names_level_model_and_release(cli: Cli) -> None:
    cli("baseline", "save", judged().id, "prod")
    [line] = cli("baseline", "show")[1].splitlines()
    assert line.split()[:2] == ["prod", "ready"]
    assert "m on SGLang 0.5.23, suite smoke" in line
    [row] = json.loads(cli("baseline", "show", "--json")[1])
    assert (row["name"], row["outcome"], row["profile"]) == ("prod", "pass", "p")


def test_a_baseline_shows_its_origin_and_each_verdict(cli: Cli) -> None:
    run = judged()
    cli("baseline", "save", run.id, "prod")
    _, out, _ = cli("baseline", "show", "prod")
    assert out.startswith("prod  ") and "state/baselines/prod.json\n" in out
    assert f"  run: {run.id}\n" in out
    assert "  pass         prose: ünïcode [x]\n" in out


def test_a_comparison_without_samples_is_neither_good_nor_bad(cli: Cli) -> None:
    code, out, _ = cli("baseline", "compare", judged(minute=1).id, judged().id)
    assert (code, "nothing to compare" in out) == (5, True)


def test_other_models_are_noted_in_a_comparison(cli: Cli) -> None:
    run, other = judged(minute=1, model="another"), judged()
    assert "  note " in cli("baseline", "compare", run.id, other.id)[1]
    assert json.loads(cli("baseline", "compare", run.id, other.id, "--json")[1])["notes"] != []


def test_the_margins_of_the_profile_decide_a_comparison(cli: Cli) -> None:
    before = judged(samples={"speed": {"decode": [100.0, 101.0, 99.0, 100.5, 99.5]}})
    now = judged(samples={"speed": {"decode": [80.0, 81.0, 79.0, 80.5, 79.5]}}, minute=1)
    assert cli("baseline", "compare", now.id, before.id)[0] == 1
    now.write("profile", {"path": "", "expect": {"speed": {"margin": 0.5}}})
    assert cli("baseline", "compare", now.id, before.id)[0] == 0
