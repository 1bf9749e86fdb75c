"""`diagnose unknowns`: failures without a known cause, once each, with the runs that show them."""

from __future__ import annotations

import json

from launcher.run.store import Run
from tests.support.command_line import Cli, stored
from tests.support.gate_recorded import LOG as KNOWN

SITE = "/opt/venv/lib/python3.12/site-packages/sglang/srt"


def failed(place: str, minute: int, **info: str) -> Run:
    log = (
        "[2026-11-29 15:16:16] Load weight begin. avail mem=139.13 GB\n"
        "[2026-11-29 15:16:17 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        f'  File "{SITE}/managers/{place}.py", line {500 + minute}, in add_one_req\n    self.add(req)\n'
        f"RuntimeError: {'lost pages ' * 60}\n"
    )
    return stored(minute=minute, log=log, **info)


def test_an_explained_failure_is_not_listed(cli: Cli) -> None:
    stored(log=KNOWN)
    assert cli.diagnose("unknowns") == (0, "no failures without a known cause\n", "")
    assert json.loads(cli.diagnose("unknowns", "--json")[1]) == {"unknowns": []}


def test_a_repeated_failure_is_one_row_with_its_newest_runs(cli: Cli) -> None:
    runs = [failed("policy", minute, engine="0.5.12", host=f"box{minute % 2}") for minute in range(5)]
    single = failed("batch", 9)
    code, out, _ = cli.diagnose("unknowns")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("5x ") and "policy.py:add_one_req" in lines[0] and "0.5.12" in lines[0]
    assert runs[4].id in lines[2] and runs[0].id not in out
    assert lines[2].endswith("and 2 more") and "box0, box1" in lines[2]
    assert lines[3].startswith("1x ")
    assert single.id in lines[5] and "more" not in lines[5]
    assert "diagnose scaffold RUN NAME" in lines[6]


def test_a_long_message_is_cut_for_people(cli: Cli) -> None:
    failed("policy", 0)
    assert max(map(len, cli.diagnose("unknowns")[1].splitlines())) < 220


def test_json_lists_every_run_of_a_failure(cli: Cli) -> None:
    runs = [failed("policy", minute) for minute in range(5)]
    [group] = json.loads(cli.diagnose("unknowns", "--json")[1])["unknowns"]
    assert group["runs"] == [run.id for run in reversed(runs)]


def test_failures_on_other_hosts_are_left_out(cli: Cli) -> None:
    mine = failed("policy", 0, host="gpu-box")
    failed("policy", 1, host="other")
    [group] = json.loads(cli.diagnose("unknowns", "--host", "gpu-box", "--json")[1])["unknowns"]
    assert group["runs"] == [mine.id]
    assert cli.diagnose("unknowns", "--host", "third")[1] == "no failures without a known cause\n"
