"""`launch replay`: recorded runs judged again; a verdict that changed is shown and is exit code 1."""

from __future__ import annotations

import json

import pytest

from launcher.gate.evidence_bundle import write
from launcher.run.store import Run
from tests.support.command_line import Cli
from tests.support.gate_recorded import CAUSE, crashed


@pytest.fixture
def run(cli: Cli) -> Run:
    return crashed(cli.folder / "state" / "runs" / "20261129-120000-chat-abcd")


def flipped(run: Run) -> None:
    run.write("diagnosis", {"cause": "cuda-driver-too-old", "healthy": False, "ledger": []})


def test_an_unchanged_verdict_is_shown_once(cli: Cli, run: Run) -> None:
    code, out, err = cli("replay", run.id)
    assert (code, err) == (0, "")
    assert out.startswith(f"{run.id} (profile chat)\n")
    assert f"  cause    same     {CAUSE}\n" in out
    assert "→" not in out.partition("cause")[2].partition("\n")[0]


def test_a_changed_verdict_is_shown_with_both_and_fails(cli: Cli, run: Run) -> None:
    flipped(run)
    code, out, _ = cli("replay", run.id)
    assert code == 1
    assert f"  cause    FLIPPED  cuda-driver-too-old → {CAUSE}\n" in out


def test_a_verdict_that_was_not_recorded_is_new_and_does_not_fail(cli: Cli, run: Run) -> None:
    (run.folder / "diagnosis.json").unlink()
    code, out, _ = cli("replay", run.id)
    assert (code, f"  cause    new      not recorded → {CAUSE}\n" in out) == (0, True)


def test_one_changed_run_among_several_is_enough_to_fail(cli: Cli, run: Run) -> None:
    other = crashed(cli.folder / "copy")
    flipped(other)
    code, out, _ = cli("replay", run.id, "copy", "--json")
    rows = json.loads(out)
    assert (code, [row["flipped"] for row in rows]) == (1, [[], ["cause"]])
    assert [row["now"]["cause"] for row in rows] == [CAUSE, CAUSE]


def test_a_warning_that_no_longer_appears_is_noted_and_does_not_fail(cli: Cli, run: Run) -> None:
    run.write("diagnosis", {"cause": CAUSE, "healthy": False, "ledger": ["old-warning"]})
    code, out, _ = cli("replay", run.id)
    assert (code, out.splitlines()[-1]) == (0, "  note: warnings that no longer appear: old-warning")


def test_a_bundle_is_judged_like_its_run(cli: Cli, run: Run) -> None:
    write(run, cli.folder / "run.tar.gz", {})
    code, out, _ = cli("replay", "run.tar.gz")
    assert (code, f"  cause    same     {CAUSE}\n" in out) == (0, True)


@pytest.mark.parametrize("words", [(), ("nothing",), ("notes.txt",), ("empty",)])
def test_what_is_not_a_run_is_refused(cli: Cli, words: tuple[str, ...]) -> None:
    (cli.folder / "notes.txt").write_text("not an archive")
    (cli.folder / "empty").mkdir()
    code, out, err = cli("replay", *words)
    assert (code, out, err != "") == (2, "", True)
