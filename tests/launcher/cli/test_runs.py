"""`launch runs`: the newest runs first, for people, pipes and programs."""

from __future__ import annotations

import json

import pytest

from launcher.run.store import RunStore
from tests.support.command_line import NOON, Cli, on_a_terminal, stored


def listed(cli: Cli, *words: str) -> list[str]:
    return [row["run"] for row in json.loads(cli("runs", "--json", *words)[1])]


def test_the_newest_runs_are_first(cli: Cli) -> None:
    runs = [stored(minute=minute).id for minute in (3, 1, 2)]
    assert listed(cli) == [runs[0], runs[2], runs[1]]
    assert listed(cli, "-n", "2") == [runs[0], runs[2]]
    assert listed(cli, "-n", "0") == []


def test_a_negative_count_is_refused(cli: Cli) -> None:
    stored()
    code, out, err = cli("runs", "-n", "-1")
    assert (code, out, "--count" in err) == (2, "", True)


def test_runs_of_other_hosts_are_left_out_before_they_are_counted(cli: Cli) -> None:
    mine = stored(minute=1, host="gpu-box")
    stored(minute=2, host="other")
    assert listed(cli, "--host", "gpu-box", "-n", "1") == [mine.id]
    code, out, err = cli("runs", "--host", "third")
    assert (code, out, err) == (0, "", "no runs on `third`; `launch runs` lists all\n")


def test_a_pipe_receives_fields_between_tabs(cli: Cli) -> None:
    run = stored("ünïcode", state="validated", host="gpu-box", level="good enough")
    code, out, err = cli("runs")
    assert (code, err) == (0, "")
    assert out == f"{run.id}\tvalidated\tünïcode\tgpu-box\t0.5.23\tgood enough\n"


def test_a_terminal_shows_a_table_with_a_head(cli: Cli) -> None:
    run = stored(state="validated", level="good enough", created=NOON.timestamp())
    head, row = on_a_terminal("launch", "runs").splitlines()
    assert "state" in head and "age" in head
    assert run.id in row and "validated (good enough)" in row


def test_a_run_without_a_host_or_level_keeps_its_columns(cli: Cli) -> None:
    run = RunStore().create("p", NOON)
    assert cli("runs")[1] == f"{run.id}\tplanned\t\t\t\t\n"


def test_the_first_run_is_explained(cli: Cli) -> None:
    code, out, err = cli("runs")
    assert (code, out, "launch profile NAME --host HOST" in err) == (0, "", True)
    assert cli("runs", "--json")[1] == "[]\n"


@pytest.mark.parametrize("name", ["notes", "20261129-120000-p-zzzz", ".trash"])
def test_other_folders_next_to_the_runs_are_ignored(cli: Cli, name: str) -> None:
    run = stored()
    (RunStore().root / name).mkdir()
    assert listed(cli) == [run.id]
