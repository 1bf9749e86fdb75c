"""Unexplained runs: they are grouped, become proposed causes, and a stalled one is never called healthy."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from checks.vocabulary import LogVerdict
from launcher.cli.app import DIAGNOSE
from launcher.cli.app import run as command
from launcher.flows.diagnose.run_diagnosis import diagnose_run
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


def test_a_run_becomes_a_proposed_cause(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    run = made(store, crash("schedule_policy", 7))
    assert command("diagnose", DIAGNOSE, ["scaffold", run.id, "pages-lost-in-policy"]) == 0
    folder = Path("knowledge-drafts/pages-lost-in-policy")
    assert str(folder) in capsys.readouterr().out
    assert {path.suffix for path in folder.iterdir()} == {".yaml", ".log"}
    assert "lost 7 pages" in next(folder.glob("match-*.log")).read_text()
    assert command("diagnose", DIAGNOSE, ["scaffold", run.id, "pages-lost-in-policy"]) == 2


def test_a_log_file_becomes_a_proposed_cause_without_its_secrets(store: RunStore, tmp_path: Path) -> None:
    log = tmp_path / "some.log"
    log.write_text(
        "[2026-11-29 15:16:00] server_args=ServerArgs(api_key='sk-very-secret', tp_size=1)\n" + crash("x", 1)
    )
    assert command("diagnose", DIAGNOSE, ["scaffold", str(log), "pages-lost-in-x", "--engine", "0.5.12"]) == 0
    text = "".join(path.read_text() for path in Path("knowledge-drafts/pages-lost-in-x").iterdir())
    assert "sk-very-secret" not in text and "lost 1 pages" in text


def test_a_known_cause_is_not_proposed_again(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    run = made(store, START + "RuntimeError: Cannot find any model weights with `/data/models/m`\n")
    assert command("diagnose", DIAGNOSE, ["scaffold", run.id, "no-weights-there"]) == 2
    assert "model-directory-without-weights" in capsys.readouterr().err


STALL = {"event": "Stalled", "at": 320.0, "phase": "weights", "silent": 300.0, "last_line": "Load weight begin."}


def test_a_stalled_run_is_not_healthy(store: RunStore) -> None:
    run = made(store, START, "stalled")
    run.append_event({**STALL, "doing": "9 processes, 0.0 s of CPU, 0 MB read since the last look, 8 waiting for disk"})
    diagnosis = diagnose_run(run)
    assert not diagnosis.healthy and diagnosis.cause is None
    assert "300 s in phase `weights`" in diagnosis.sentence and "8 waiting for disk" in diagnosis.sentence
    assert diagnosis.fingerprint == "stall/weights"


def test_a_run_that_compiles_kernels_gets_its_own_fingerprint(store: RunStore) -> None:
    run = made(store, START, "timed-out")
    run.append_event({**STALL, "doing": "kernels are being compiled", "activity": "compiling"})
    assert diagnose_run(run).fingerprint == "compile/weights"


def test_a_stall_that_the_run_recovered_from_does_not_count(store: RunStore) -> None:
    run = made(store, START, "stalled")
    run.append_event({**STALL, "doing": "?"})
    run.append_event({"event": "Resumed", "at": 330.0, "phase": "weights"})
    assert diagnose_run(run).verdict is LogVerdict.STARTING
