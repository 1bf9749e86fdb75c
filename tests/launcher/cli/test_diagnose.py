"""`diagnose log` as it is typed: exit codes, output for terminal, pipe and issue, and --apply."""

import json
import re
from pathlib import Path

import pytest

from checks.vocabulary import Remedy
from launcher.cli.app import DIAGNOSE, run
from launcher.cli.diagnose import remedy_json
from tests.support.command_line import on_a_terminal
from tests.support.paths import CORPUS

KEYS = {
    "cause", "healthy", "sentence", "why", "evidence", "remedies", "symptoms", "ledger", "dismissed", "fingerprint",
    "phase", "engine", "notes", "verdict", "foreseen", "suspects", "plan",
}  # fmt: skip


def diagnose(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = run("diagnose", DIAGNOSE, ["log", *words])
    return code, capsys.readouterr().out


def test_a_named_cause_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = diagnose(capsys, str(CORPUS / "0.5.11-h200" / "nextn-nobuf.log"), "--engine", "0.5.11", "--json")
    diagnosis = json.loads(out)
    assert code == 1 and set(diagnosis) == KEYS
    assert diagnosis["cause"]["id"] == "speculation-without-extra-buffer" and diagnosis["cause"]["line"] == 26
    assert any("mamba-scheduler-strategy" in remedy["set"] for remedy in diagnosis["remedies"])


def test_a_healthy_log_is_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = diagnose(capsys, str(CORPUS / "0.5.23-cpu" / "a-normal.log"), "--json")
    diagnosis = json.loads(out)
    assert code == 0 and diagnosis["healthy"] and diagnosis["cause"] is None and diagnosis["engine"] == "0.5.23"


def test_an_unknown_failure_is_exit_code_5(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = diagnose(capsys, str(CORPUS / "0.5.23-cpu" / "e2-tp2.log.gz"))
    assert code == 5 and out.startswith("cause      unknown: ")


def test_a_missing_file_is_exit_code_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert diagnose(capsys, str(tmp_path / "none.log"))[0] == 2


def test_unreadable_facts_are_exit_code_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = str(CORPUS / "0.5.23-cpu" / "a-normal.log")
    for text in ("[1]", "{", '{"observed": 3}', '{"gpu": [1]}'):
        (tmp_path / "facts.json").write_text(text)
        assert diagnose(capsys, log, "--facts", str(tmp_path / "facts.json"))[0] == 2


def test_facts_of_the_caller_override_the_log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "facts.json").write_text(json.dumps({"engine_version": "0.5.10", "gpu": None, "flags": {"tp": "2"}}))
    _, out = diagnose(
        capsys, str(CORPUS / "0.5.23-cpu" / "a-normal.log"), "--facts", str(tmp_path / "facts.json"), "--json"
    )
    assert json.loads(out)["engine"] == "0.5.10"


NEXTN = CORPUS / "0.5.11-h200" / "nextn-nobuf.log"


def test_a_terminal_and_a_pipe_show_the_same_rows(capsys: pytest.CaptureFixture[str]) -> None:
    _, plain = diagnose(capsys, str(NEXTN), "--engine", "0.5.11")
    coloured = on_a_terminal("diagnose", "log", str(NEXTN), "--engine", "0.5.11")
    assert "\x1b[" in coloured and "\x1b[" not in plain
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert re.sub(r"[\s:]+", "", bare) == re.sub(r"[\s:]+", "", plain)


def test_everything_an_engineer_needs_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    _, out = diagnose(capsys, str(NEXTN), "--engine", "0.5.11")
    assert out.startswith("cause      speculation-without-extra-buffer: ")
    assert "line 26 2026-11-29 15:18:28: ValueError: Speculative decoding" in out
    assert (
        "remedy     mamba-scheduler-strategy: extra_buffer, env SGLANG_ENABLE_SPEC_V2=1" in out
    )  # as 0.5.11 spells it
    assert "ruled out  Deprecation notices (line 1)" in out
    assert out.endswith("more       launch explain speculation-without-extra-buffer\n")


def test_markdown_is_for_an_issue(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = diagnose(capsys, str(NEXTN), "--engine", "0.5.11", "--markdown")
    assert code == 1 and out.startswith("### `speculation-without-extra-buffer`: ")
    assert "```text\n    26 ValueError: " in out and "- **remedy**: mamba-scheduler-strategy" in out


def profile(folder: Path) -> Path:
    folder.mkdir()
    path = folder / "nextn.yaml"
    path.write_text("why: w\nmodel: {path: /m}\nflags: {speculative-algorithm: NEXTN, disable-radix-cache: false}\n")
    return path


def test_apply_without_a_profile_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert diagnose(capsys, str(NEXTN), "--apply", "x")[0] == 2


def test_flags_of_the_profile_are_facts_of_the_diagnosis(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = profile(tmp_path / "mine")
    (tmp_path / "other.json").write_text(json.dumps({"engine_version": "0.5.11"}))
    code, out = diagnose(capsys, str(NEXTN), "--profile", str(path), "--facts", str(tmp_path / "other.json"), "--json")
    assert code == 1 and json.loads(out)["engine"] == "0.5.11"


@pytest.mark.parametrize(
    ("remedy", "install", "run", "require", "inspect"),
    [
        (Remedy(text="Get it.", run="apt-get install gcc"), "apt-get install gcc", "apt-get install gcc", {}, None),
        (
            Remedy(text="Get it.", require={"torch": "==2.9.1", "ninja": ""}),
            'pip install "torch==2.9.1" ninja',
            None,
            {"torch": "==2.9.1", "ninja": ""},
            None,
        ),
        (Remedy(text="Look.", inspect="nvidia-smi"), None, None, {}, "nvidia-smi"),
        (Remedy(text="x"), None, None, {}, None),
    ],
)
def test_json_keeps_install_next_to_the_three_kinds(
    remedy: Remedy, install: str | None, run: str | None, require: dict[str, str], inspect: str | None
) -> None:
    document = remedy_json(remedy)
    assert {key: document[key] for key in ("install", "run", "require", "inspect")} == {
        "install": install, "run": run, "require": require, "inspect": inspect,
    }  # fmt: skip


def test_an_observation_is_answered_with_experiments_on_this_launch(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "empty.log").write_text("")
    path = profile(tmp_path / "mine")
    code, out = diagnose(capsys, str(tmp_path / "empty.log"), "--profile", str(path), "--observed", "garbled")
    assert code == 5
    assert "try        1. without speculative-algorithm: if the trouble ends, speculation is at fault" in out


def test_an_unknown_observation_is_refused_with_the_known_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = diagnose(capsys, str(NEXTN), "--observed", "purple")
    assert code == 2


def test_a_suspect_has_its_position_in_the_profile(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "crash.log"
    log.write_text(
        "[2026-11-29 15:25:10 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/a/sglang/srt/speculative/ngram_worker.py", line 10, in forward\nFrobError: odd\n'
    )
    path = tmp_path / "x.yaml"
    path.write_text("why: w\nmodel: {path: /m}\nflags:\n  speculative-algorithm: NGRAM\n")
    _, out = diagnose(capsys, str(log), "--profile", str(path), "--engine", "0.5.11", "--json")
    first = json.loads(out)["suspects"][0]
    assert first["setting"] == "flag.speculative-algorithm"
    assert "x.yaml:4" in first["where"]
    assert first["experiments"][0]["untested"] is True
