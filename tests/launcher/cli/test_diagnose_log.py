import json
from pathlib import Path

import pytest

from launcher.cli.app import DIAGNOSE, run

CORPUS = Path(__file__).parents[2] / "corpus"
KEYS = {
    "cause", "healthy", "sentence", "why", "evidence", "remedies", "symptoms", "ledger", "dismissed", "fingerprint",
    "phase", "engine", "notes",
}  # fmt: skip


def diagnose(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = run("diagnose", DIAGNOSE, ["log", *words])
    return code, capsys.readouterr().out


def test_a_named_cause_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = diagnose(capsys, str(CORPUS / "0.5.11-h200" / "nextn-nobuf.log"), "--engine", "0.5.11", "--json")
    found = json.loads(out)
    assert code == 1 and set(found) == KEYS
    assert found["cause"]["id"] == "speculation-without-extra-buffer" and found["cause"]["line"] == 26
    assert any("mamba-scheduler-strategy" in remedy["set"] for remedy in found["remedies"])


def test_a_healthy_log_is_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = diagnose(capsys, str(CORPUS / "0.5.23-cpu" / "a-normal.log"), "--json")
    found = json.loads(out)
    assert code == 0 and found["healthy"] and found["cause"] is None and found["engine"] == "0.5.23"


def test_an_unknown_failure_is_exit_code_5(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = diagnose(capsys, str(CORPUS / "0.5.23-cpu" / "e2-tp2.log.gz"))
    assert code == 5 and out.startswith("unknown: ")


def test_a_missing_file_is_exit_code_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert diagnose(capsys, str(tmp_path / "none.log"))[0] == 2


def test_unreadable_facts_are_exit_code_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "facts.json").write_text("[1]")
    log = str(CORPUS / "0.5.23-cpu" / "a-normal.log")
    assert diagnose(capsys, log, "--facts", str(tmp_path / "facts.json"))[0] == 2


def test_facts_of_the_caller_count(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "facts.json").write_text(json.dumps({"engine_version": "0.5.10", "gpu": None, "flags": {"tp": "2"}}))
    _, out = diagnose(
        capsys, str(CORPUS / "0.5.23-cpu" / "a-normal.log"), "--facts", str(tmp_path / "facts.json"), "--json"
    )
    assert json.loads(out)["engine"] == "0.5.10"
