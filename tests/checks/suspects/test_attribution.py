"""An unknown failure gets a foreseen cause, suspects or a plan; every other diagnosis stays as it is."""

from __future__ import annotations

from typing import Any

import pytest

from checks.before.rule_index import of_entries
from checks.during.diagnosis import judged_and_worded
from checks.during.log.scan import scan
from checks.during.reading import read
from checks.suspects.attribution import attribute
from checks.vocabulary import Diagnosis, Finding, LogVerdict, Severity
from tests.checks.suspects.failures import ENGINE, HEAD, STARTED, frame
from tests.support import shipped

CUT = 'Traceback (most recent call last):\n  File "<frozen runpy>", line 198, in _run_module_as_m...\n'
FROB = STARTED + HEAD + frame("srt/layers/attention/flashmla_backend.py", "f") + "FrobError: odd\n"
STORY = {
    "flags": {
        "speculative-algorithm": "NEXTN", "speculative-num-draft-tokens": "2", "speculative-eagle-topk": "1",
        "tp-size": "8", "quantization": "modelopt_fp4", "model-path": "/data/model",
    },
    "env": {"SGLANG_ENABLE_SPEC_V2": "1"},
    "model": {"name": "nvidia/Qwen3.5-397B-A17B-NVFP4"},
}  # fmt: skip


def attributed(log: str, known: dict[str, Any], engine: str = ENGINE, recorded: tuple[Finding, ...] = ()) -> Diagnosis:
    reading = read(scan([log.encode()], shipped.index().words), shipped.index(), known, engine)
    judged, diagnosis = judged_and_worded(reading)
    return attribute(judged, diagnosis, of_entries(), recorded)


def test_a_cut_traceback_of_a_launch_that_cannot_start_names_every_reason() -> None:
    diagnosis = attributed(CUT, STORY, engine="0.5.10")
    assert diagnosis.verdict is LogVerdict.CAUSE
    assert [item.id for item in diagnosis.foreseen] == [
        "speculation-without-extra-buffer",
        "speculative-triple-incomplete",
    ]
    assert diagnosis.phase == "args"
    assert len(diagnosis.remedies) >= 2
    assert any("before any rank started" in note for note in diagnosis.notes)


def test_an_unknown_crash_keeps_its_verdict_and_gets_suspects_with_experiments() -> None:
    diagnosis = attributed(FROB, {"flags": {"attention-backend": "flashmla", "page-size": "64"}})
    assert diagnosis.verdict is LogVerdict.UNKNOWN
    assert diagnosis.cause is None
    first = diagnosis.suspects[0]
    assert (first.setting, first.value) == ("flag.attention-backend", "flashmla")
    assert "flashmla_backend.py" in first.reasons[0]
    assert first.experiments


def test_recorded_findings_replace_a_check_by_the_log_alone() -> None:
    error = Finding(
        id="mla-missing", severity=Severity.ERROR, message="flashmla without latent attention",
        subject="flag.attention-backend",
    )  # fmt: skip
    diagnosis = attributed(FROB, {"flags": {"attention-backend": "flashmla"}}, recorded=(error,))
    assert diagnosis.cause is not None
    assert diagnosis.cause.id == "mla-missing"
    assert any("FrobError: odd" in note for note in diagnosis.notes)


def test_an_observation_gets_a_plan() -> None:
    known = {"flags": {"attention-backend": "triton", "disable-radix-cache": True}, "observed": {"kind": "garbled"}}
    diagnosis = attributed(STARTED, known)
    assert diagnosis.plan[0].change.set == {"disable-overlap-schedule": True}
    assert diagnosis.suspects == ()


def test_an_unknown_observation_is_answered_with_the_known_kinds() -> None:
    notes = attributed(STARTED, {"flags": {"tp-size": "2"}, "observed": {"kind": "purple"}}).notes
    assert any("`purple` is not a known observation" in note and "garbled" in note for note in notes)


@pytest.mark.parametrize(
    "log",
    [
        STARTED,
        STARTED + '[2026-11-29 15:25:05] INFO:     127.0.0.1:5 - "POST /generate HTTP/1.1" 200 OK\n',
        "launch_server.py: error: unrecognized arguments: --frob\n",
        "",
    ],
)
def test_a_diagnosis_that_is_not_unknown_does_not_change(log: str) -> None:
    diagnosis = attributed(log, {"flags": {"attention-backend": "flashmla"}})
    assert (diagnosis.suspects, diagnosis.plan, diagnosis.foreseen) == ((), (), ())


def test_without_a_launch_there_is_no_plan_for_it() -> None:
    diagnosis = attributed("", {"observed": {"kind": "garbled"}})
    assert diagnosis.plan == ()
    assert any("state it with --profile or --facts" in note for note in diagnosis.notes)


def test_an_option_whose_absence_is_an_error_is_a_suspect() -> None:
    log = STARTED + HEAD + frame("srt/absent.py", "f") + "FrobError: odd\n"
    flags = {"speculative-algorithm": "EAGLE3", "speculative-num-steps": "3", "model-path": "/m"}
    settings = [item.setting for item in attributed(log, {"flags": flags}).suspects]
    assert "flag.speculative-draft-model-path" in settings


def test_without_the_launch_the_options_that_lead_to_the_code_are_suspects() -> None:
    diagnosis = attributed(FROB, {})
    first = diagnosis.suspects[0]
    assert (first.setting, first.value) == ("flag.attention-backend", "flashmla")


def test_a_bare_message_is_attributed_by_the_statement_that_raises_it() -> None:
    log = "ValueError: Cannot find target module name for x.lora_A.weight in {'qkv_proj'}\n"
    assert all("lora" in item.setting for item in attributed(log, {}, engine="0.5.23").suspects)


def test_a_signal_that_a_limit_sends_names_the_limit() -> None:
    log = STARTED + "[2026-11-29 15:26:10] Scheduler 0 (pid=7) crashed with exit code -24\n"
    assert [(item.setting, item.value) for item in attributed(log, {"flags": {"page-size": "64"}}).suspects] == [
        ("host.limits", "CPU time limit")
    ]


def test_a_module_that_other_releases_have_names_them() -> None:
    log = "ModuleNotFoundError: No module named 'sglang.srt.conversation'\n"
    first = attributed(log, {}, engine="0.5.11").suspects[0]
    assert first.setting == "package.sglang"
    assert first.experiments[0].require == {"sglang": "==0.5.1"}


def test_the_code_of_another_release_is_an_experiment() -> None:
    log = STARTED + HEAD + frame("srt/managers/scheduler.py", "run_batch", "self.attn_cp_size = 1") + "FrobError: odd\n"
    diagnosis = attributed(log, {"flags": {"attn-cp-size": "2"}}, engine="0.5.9")
    steps = [*(step for item in diagnosis.suspects for step in item.experiments), *(s.change for s in diagnosis.plan)]
    assert any(step.upgrade.get("sglang") == "0.5.10" for step in steps)
