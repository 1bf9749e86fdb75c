"""Every sentence may be rewritten: no verdict, exit code or fingerprint depends on the wording."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from checks.during import diagnosis_wording
from checks.during.diagnosis import diagnose_chunks
from checks.vocabulary import Diagnosis
from launcher.cli.exits import of_diagnosis
from launcher.flows.diagnose.run_diagnosis import diagnose_run
from launcher.run import run_wording
from launcher.run.events import to_json
from launcher.run.frames import Sample
from launcher.run.progress import PhaseLimits, Watch, sample, tick
from launcher.run.store import Run, RunStore
from tests.support import shipped
from tests.support.paths import CORPUS

LOGS = sorted(path for path in CORPUS.glob("*/*.log") if path.stat().st_size < 60_000)
ODD = {
    "empty": b"",
    "foreign": b"hello\n",
    "running": b"[2026-11-29 15:24:59] The server is fired up and ready to roll!\n",
    "interleaved": b"".join(
        b"[2026-11-29 15:25:03 TP%d] Scheduler hit an exception: Traceback (most recent call last):\n" % rank
        for rank in (0, 1)
    )
    + b'  File "/a/sglang/srt/x.py", line 1, in f\nValueError: one\nTypeError: two\n',
}


def rewrite(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the sentence that each function and constant of a module returns."""

    def replaced(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            result = function(*args, **options)
            if isinstance(result, Iterator):
                return iter(["something else" for _ in result])
            return "something else" if isinstance(result, str) else result

        return call

    for name, item in vars(module).items():
        if isinstance(item, str) and not name.startswith("__") and name not in ("_DRAFT_FRAME",):
            monkeypatch.setattr(module, name, "something else")
        elif callable(item) and getattr(item, "__module__", "") == module.__name__:
            monkeypatch.setattr(module, name, replaced(item))


def decisions(diagnosis: Diagnosis) -> tuple[Any, ...]:
    """Return everything that a diagnosis decides, without its sentences."""
    cause = diagnosis.cause.id if diagnosis.cause else None
    exit_code = int(of_diagnosis(diagnosis))
    return diagnosis.verdict, cause, diagnosis.fingerprint, diagnosis.healthy, diagnosis.observed, exit_code


def all_decisions() -> dict[str, tuple[Any, ...]]:
    index = shipped.index()
    logs = {path.name: path.read_bytes() for path in LOGS} | ODD
    return {name: decisions(diagnose_chunks([data], index)) for name, data in logs.items()}


def test_a_diagnosis_is_decided_before_it_is_worded(monkeypatch: pytest.MonkeyPatch) -> None:
    before = all_decisions()
    rewrite(diagnosis_wording, monkeypatch)
    index = shipped.index()
    assert diagnose_chunks([b""], index).sentence == "something else"
    assert all_decisions() == before
    assert {item[0] for item in before.values()} == {"cause", "unknown", "healthy", "stopped", "not-a-log"}


def stalled_run(folder: Path, process: str) -> Run:
    run = RunStore(folder).create("p", datetime(2026, 1, 1, tzinfo=UTC))
    run.log.write_text("[2026-11-29 15:25:03] server_args=ServerArgs(model_path='m')\n")
    run.update(state="stalled")
    watch = Watch(classify=lambda _: None, limits={}, default_limits=PhaseLimits(deadline=900, silence=10))
    observation = Sample(({"pid": 1, "name": process, "state": "T" if process == "x" else "S", "cpu": 0.0},), 0.0, 0)
    watch, _ = sample(watch, observation, 1.0)
    for event in tick(watch, 30.0)[1]:
        run.append_event(to_json(event))
    return run


@pytest.mark.parametrize(("process", "kind"), [("/usr/bin/nvcc -c", "compile"), ("x", "stopped"), ("python", "stall")])
def test_the_kind_of_a_stall_is_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process: str, kind: str) -> None:
    before = diagnose_run(stalled_run(tmp_path / "a", process))
    rewrite(run_wording, monkeypatch)
    after = diagnose_run(stalled_run(tmp_path / "b", process))
    assert before.fingerprint == f"{kind}/starting" and decisions(before) == decisions(after)
    assert after.sentence == "something else"


def test_the_origin_of_a_finding_is_stored(tmp_path: Path) -> None:
    """`launch replay` judges rules again and leaves out findings that only the host or the engine can report."""
    from checks.vocabulary import Finding, Origin, Severity
    from launcher.flows.launch.launch import asdict_finding

    finding = Finding(id="x", severity=Severity.ERROR, origin=Origin.ENGINE, message="in any words")
    assert json.loads(json.dumps(asdict_finding(finding)))["origin"] == "engine"
