"""A run is diagnosed from its log and its stored state: a stall or a crash is never called healthy."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from checks.during.log.scan import scan
from checks.vocabulary import LogVerdict
from launcher.errors import UsageError
from launcher.flows.diagnose.log_view import LogView
from launcher.flows.diagnose.run_diagnosis import HostEvidence, diagnose_run, has_log, known, log_view, stall_of
from launcher.knowledge_cache import index
from launcher.run.store import Run, RunStore

START = "[2026-11-29 15:16:00] Load weight begin. avail mem=139.13 GB\n"
WEIGHTS = START + "RuntimeError: Cannot find any model weights with `/data/models/m`\n"
READY = START + (
    "[2026-11-29 15:16:09] INFO:     Application startup complete.\n"
    "[2026-11-29 15:16:10] The server is fired up and ready to roll!\n"
)
DECODE = (
    "[2026-11-29 16:46:19] Decode batch, #running-req: 1, #token: 5, cuda graph: False, "
    "gen throughput (token/s): 10.00, #queue-req: 0\n"
)
STALL = {"event": "Stalled", "at": 320.0, "phase": "weights", "silent": 300.0, "last_line": "Load weight begin."}
NO_WEIGHTS = "model-directory-without-weights"


def stored(folder: Path, log: str | bytes, state: str = "crashed", *events: dict[str, Any], **info: Any) -> Run:
    run = RunStore(folder).create("fake", datetime(2026, 11, 29, 15, 16, tzinfo=UTC))
    run.log.write_bytes(log.encode() if isinstance(log, str) else log)
    run.update(state=state, host="box", engine="0.5.12", **info)
    for event in events:
        run.append_event(event)
    return run


def test_the_cause_in_the_log_is_named_and_a_summary_is_stored(tmp_path: Path) -> None:
    run = stored(tmp_path, WEIGHTS)
    diagnosis = diagnose_run(run)
    assert diagnosis.cause is not None and diagnosis.cause.id == NO_WEIGHTS
    summary = run.read("diagnosis")
    assert (summary["cause"], summary["verdict"], summary["healthy"]) == (NO_WEIGHTS, "cause", False)
    assert summary["sentence"] == diagnosis.sentence


def test_a_run_that_answered_is_healthy(tmp_path: Path) -> None:
    run = stored(tmp_path, READY, "ready")
    assert diagnose_run(run).verdict is LogVerdict.HEALTHY
    assert run.read("diagnosis")["cause"] is None


def test_a_crash_is_a_failure_even_if_the_log_shows_none(tmp_path: Path) -> None:
    diagnosis = diagnose_run(stored(tmp_path, READY, "crashed", exit=137))
    assert (diagnosis.verdict, diagnosis.healthy) == (LogVerdict.UNKNOWN, False)
    assert "137" in diagnosis.sentence


def test_a_stalled_run_is_not_healthy(tmp_path: Path) -> None:
    doing = "9 processes, 0.0 s of CPU, 0 MB read since the last look, 8 waiting for disk"
    diagnosis = diagnose_run(stored(tmp_path, START, "stalled", {**STALL, "doing": doing}))
    assert not diagnosis.healthy and diagnosis.cause is None
    assert "300 s in phase `weights`" in diagnosis.sentence and "8 waiting for disk" in diagnosis.sentence
    assert (diagnosis.fingerprint, diagnosis.phase) == ("stall/weights", "weights")


@pytest.mark.parametrize(
    ("activity", "fingerprint"),
    [("compiling", "compile/weights"), ("stopped", "stopped/weights"), ("idle", "stall/weights")],
)
def test_what_the_processes_did_decides_the_fingerprint_of_a_stall(
    tmp_path: Path, activity: str, fingerprint: str
) -> None:
    run = stored(tmp_path, START, "timed-out", {**STALL, "doing": "?", "activity": activity})
    assert diagnose_run(run).fingerprint == fingerprint


def test_a_stall_beside_a_known_cause_is_a_note(tmp_path: Path) -> None:
    diagnosis = diagnose_run(stored(tmp_path, WEIGHTS, "stalled", STALL))
    assert diagnosis.cause is not None and diagnosis.cause.id == NO_WEIGHTS
    assert any("300 s in phase `weights`" in note for note in diagnosis.notes)


def test_a_stall_that_the_run_recovered_from_does_not_count(tmp_path: Path) -> None:
    resumed = {"event": "Resumed", "at": 330.0, "phase": "weights"}
    run = stored(tmp_path, START, "stalled", {**STALL, "doing": "?"}, resumed)
    assert stall_of(run) is None
    assert diagnose_run(run).verdict is LogVerdict.STARTING


def test_the_last_stall_counts_and_only_for_a_run_that_ended_with_one(tmp_path: Path) -> None:
    resumed = {"event": "Resumed", "at": 330.0}
    events = (STALL, resumed, {**STALL, "event": "Overdue", "phase": "graphs"})
    run = stored(tmp_path, START, "timed-out", *events)
    stall = stall_of(run)
    assert stall is not None
    assert (stall["phase"], stall["doing"]) == ("graphs", "unknown")
    run.update(state="ready")
    assert stall_of(run) is None


def test_an_event_of_an_older_launcher_without_details_is_still_a_stall(tmp_path: Path) -> None:
    run = stored(tmp_path, START, "stalled", {"event": "Stalled", "at": 1.0, "silent": 300.0})
    assert diagnose_run(run).fingerprint == "stall/import"


def test_an_out_of_memory_kill_on_the_host_explains_a_log_that_ends_without_an_error(tmp_path: Path) -> None:
    line = (
        "[2026-11-29 15:16:09] kernel: Out of memory: Killed process 811 (sglang::schedul) total-vm:1kB, anon-rss:1kB"
    )
    diagnosis = diagnose_run(stored(tmp_path, START), HostEvidence(kernel=(line,)))
    assert diagnosis.cause is not None and diagnosis.cause.id == "host-memory-exhausted"
    assert line not in diagnosis.notes


def test_a_gpu_fault_is_reported_even_without_a_known_cause(tmp_path: Path) -> None:
    line = "[2026-11-29 15:16:09] kernel: NVRM: Xid (PCI:0000:5e:00): 79, pid=811, GPU has fallen off the bus."
    evidence = HostEvidence(kernel=(line,) * 20, notes=("host not reached",))
    notes = diagnose_run(stored(tmp_path, START), evidence).notes
    assert (notes.count(line), "host not reached" in notes) == (8, True)


def test_the_log_of_the_host_replaces_the_local_copy(tmp_path: Path) -> None:
    run = stored(tmp_path, READY)
    diagnosis = diagnose_run(run, HostEvidence(log=scan([WEIGHTS.encode()], index().words)))
    assert diagnosis.cause is not None and diagnosis.cause.id == NO_WEIGHTS
    run.log.unlink()
    assert diagnose_run(run, HostEvidence(log=scan([WEIGHTS.encode()], index().words))).cause == diagnosis.cause


def test_without_a_log_and_without_the_host_there_is_nothing_to_diagnose(tmp_path: Path) -> None:
    run = stored(tmp_path, "")
    assert not has_log(run)
    run.log.unlink()
    assert not has_log(run)
    with pytest.raises(UsageError, match="cannot read"):
        diagnose_run(run)
    assert has_log(stored(tmp_path, "x"))


@pytest.mark.parametrize("junk", [b"", b"\x00\xff" * 5000, b"no newline"])
def test_a_crash_with_junk_for_a_log_is_a_failure_without_a_cause(tmp_path: Path, junk: bytes) -> None:
    diagnosis = diagnose_run(stored(tmp_path, junk, "crashed", exit=1))
    assert (diagnosis.cause, diagnosis.healthy) == (None, False)


def test_the_stored_launch_is_what_is_known_and_a_stall_is_an_observed_hang(tmp_path: Path) -> None:
    run = stored(tmp_path, START, "stalled", STALL)
    assert known(run) == {"engine_version": None, "observed": {"kind": "hang"}}
    run.write("launch", {"engine": "0.5.12", "flags": {"tp-size": "2"}, "observed": {"kind": "garbled"}})
    facts = known(run)
    assert (facts["engine_version"], facts["flags"]) == ("0.5.12", {"tp-size": "2"})
    assert facts["observed"] == {"kind": "garbled"}


def test_validation_sees_decode_lines_and_fresh_ones_too(tmp_path: Path) -> None:
    run = stored(tmp_path, READY + DECODE, "ready")
    assert len(log_view(run).decode) == 1
    view = log_view(run, DECODE.encode() * 2)
    assert [line.graph for line in view.decode] == [False] * 3
    run.log.unlink()
    assert log_view(run, DECODE.encode()) == LogView()


CRASH = (
    "[2026-11-29 15:25:10 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/a/sglang/srt/speculative/ngram_worker.py", line 10, in forward\nFrobError: odd\n'
)


def test_a_suspect_has_its_position_in_the_profile_that_was_launched(tmp_path: Path) -> None:
    run = stored(tmp_path, CRASH)
    run.write("plan", {"engine": "0.5.11"})
    run.write("launch", {"flags": {"speculative-algorithm": "NGRAM"}})
    run.write("profile", {"flags": {"speculative-algorithm": {"value": "NGRAM", "where": "profiles/x.yaml:7:3"}}})
    first = diagnose_run(run).suspects[0]
    assert (first.setting, first.where) == ("flag.speculative-algorithm", "profiles/x.yaml:7:3")
    assert run.read("diagnosis")["suspects"][0] == "flag.speculative-algorithm"


def test_a_finding_that_was_overridden_explains_the_crash_in_its_feature(tmp_path: Path) -> None:
    run = stored(tmp_path, CRASH)
    run.write("plan", {"engine": "0.5.11"})
    run.write("launch", {"flags": {"speculative-algorithm": "NGRAM"}})
    finding = {
        "id": "ngram-without-support", "severity": "error", "message": "NGRAM speculation is not supported here",
        "subject": "flag.speculative-algorithm", "origin": "rule", "remedies": [{"unset": ["speculative-algorithm"]}],
    }  # fmt: skip
    run.write("findings", [finding])
    diagnosis = diagnose_run(run)
    assert diagnosis.cause is not None and diagnosis.cause.id == "ngram-without-support"
    assert diagnosis.remedies[0].unset == ("speculative-algorithm",)


def test_findings_of_an_older_version_do_not_stop_a_diagnosis(tmp_path: Path) -> None:
    run = stored(tmp_path, CRASH)
    run.write("findings", [{"id": 7}])
    assert diagnose_run(run).verdict is LogVerdict.UNKNOWN


def test_a_server_that_failed_its_probes_is_not_called_healthy(tmp_path: Path) -> None:
    run = stored(tmp_path, READY + DECODE, "validated")
    run.write("plan", {"engine": "0.5.11"})
    run.write("launch", {"flags": {"speculative-algorithm": "EAGLE"}})
    run.write("validation", {"verdicts": [{"id": "prose", "outcome": "fail", "figures": {}}]})
    diagnosis = diagnose_run(run)
    assert (diagnosis.verdict, diagnosis.observed) == (LogVerdict.UNKNOWN, "garbled")
    assert diagnosis.plan[0].change.unset == ("speculative-algorithm",)
