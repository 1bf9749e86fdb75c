"""Unexplained runs are grouped by their failure, the most frequent first."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from launcher.cli.app import DIAGNOSE
from launcher.cli.app import run as command
from launcher.flows.diagnose.unknowns import unknowns
from launcher.run.store import Run, RunStore

SITE = "/opt/venv/lib/python3.12/site-packages/sglang/srt"
START = "[2026-11-29 15:16:16] Load weight begin. avail mem=139.13 GB\n"


def crash(place: str, number: int) -> str:
    return (
        f"{START}[2026-11-29 15:16:17 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        f'  File "{SITE}/managers/{place}.py", line {500 + number}, in add_one_req\n    self.add(req)\n'
        f"RuntimeError: lost {number} pages\n"
    )


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    monkeypatch.setenv("SGLANG_LAUNCHER_STATE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return RunStore()


def made(store: RunStore, log: str, state: str = "crashed") -> Run:
    run = store.create("fake", datetime(2026, 11, 29, 15, 16, tzinfo=UTC))
    run.log.write_text(log)
    run.update(state=state, host="box", engine="0.5.12")
    return run


def test_a_repeated_unexplained_failure_is_one_row(store: RunStore) -> None:
    for number in range(3):
        made(store, crash("schedule_policy", number))
    made(store, crash("schedule_batch", 0))
    made(store, START + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB\n")
    failures = unknowns(store.all())
    assert [len(item.runs) for item in failures][:2] == [3, 1]
    assert "schedule_policy.py:add_one_req" in failures[0].fingerprint
    assert failures[0].engines == ("0.5.12",)


def test_the_command_lists_unexplained_failures_and_the_next_step(
    store: RunStore, capsys: pytest.CaptureFixture[str]
) -> None:
    run = made(store, crash("schedule_policy", 7))
    assert command("diagnose", DIAGNOSE, ["unknowns"]) == 0
    output = capsys.readouterr().out
    assert run.id in output and "lost 7 pages" in output and "diagnose scaffold" in output
    assert command("diagnose", DIAGNOSE, ["unknowns", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unknowns"][0]["runs"] == [run.id]
