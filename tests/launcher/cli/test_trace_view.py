"""`--trace`: printed for people and as JSON; it never changes a verdict or an exit code."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from launcher.cli.app import DIAGNOSE, LAUNCH, run
from tests.support.bench import FAKE_ENGINE
from tests.support.gate_repo import FACTS
from tests.support.paths import CORPUS

NEXTN = str(CORPUS / "0.5.11-h200" / "nextn-nobuf.log")
PROFILE = """\
model: {path: /models/x, name: Qwen/Qwen3-Next-80B-A3B-Instruct}
hardware: {gpu: RTX PRO 6000 Blackwell, count: 2}
flags:
  tp: 2
  moe-runner-backend: flashinfer_trtllm
"""
RULE = "trtllm-moe-on-sm120"


@pytest.fixture
def profile(tmp_path: Path) -> str:
    (tmp_path / "p.yaml").write_text(PROFILE)
    (tmp_path / "facts.json").write_text(json.dumps(FACTS))
    return str(tmp_path / "p.yaml")


def launch(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run("launch", LAUNCH, ["check", *words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def diagnose(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run("diagnose", DIAGNOSE, [*words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def steps(condition: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {step["fact"]: step for step in condition["steps"] if "fact" in step}


def test_a_fact_is_shown_with_the_line_of_the_profile_or_the_module(
    profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = launch(capsys, profile, "--engine", "0.5.10", "--trace", RULE)
    assert code == 2
    assert "yes      flag.moe-runner-backend is one of [flashinfer_trtllm, flashinfer_trtllm_routed] — " in out
    assert f"flashinfer_trtllm, set in {profile}:5:3" in out
    assert "host.sm12x is true — true, derived by checks/facts/derived/hardware.py" in out
    assert out.rstrip().endswith("result     It fired: rule 1 holds.")


def test_the_json_form_has_the_same_facts(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = launch(capsys, profile, "--engine", "0.5.10", "--json", "--trace", RULE)
    document = json.loads(out)
    rule = document["trace"]["rules"][0]
    facts = steps(rule["condition"])
    assert code == 2 and document["trace"]["fired"] is True and rule["holds"] is True
    assert facts["flag.moe-runner-backend"]["value"] == "flashinfer_trtllm"
    assert facts["flag.moe-runner-backend"]["origin"] == f"set in {profile}:5:3"
    assert facts["host.sm12x"]["holds"] is True
    assert any(item["id"] == RULE for item in document["findings"])


@pytest.mark.parametrize("slug", [RULE, "glibc-too-old", "kernel-lacks-compute-type"])
def test_a_trace_changes_neither_findings_nor_exit_code(
    profile: str, slug: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [profile, "--engine", "0.5.10", "--json"]
    code, plain, _ = launch(capsys, *words)
    traced_code, traced, _ = launch(capsys, *words, "--trace", slug)
    assert traced_code == code
    assert json.loads(traced)["findings"] == json.loads(plain)["findings"]
    assert "trace" not in json.loads(plain)


def test_recorded_facts_name_their_file_and_the_program(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    facts = str(Path(profile).with_name("facts.json"))
    _, out, _ = launch(capsys, profile, "--facts", facts, "--json", "--trace", "kernel-package-below-minimum")
    rules = json.loads(out)["trace"]["rules"]
    origins = {step["origin"] for rule in rules for step in steps(rule["condition"]).values()}
    assert any("checks/facts/derived/kernels.py" in text for text in origins)
    _, out, _ = launch(capsys, profile, "--facts", facts, "--json", "--trace", "memlock-limit-too-low")
    step = steps(json.loads(out)["trace"]["rules"][0]["condition"])["host.memlock_limited"]
    assert (step["known"], step["holds"]) == (False, None)
    assert step["origin"].startswith("unknown: it was not measured; checks/facts/derived/host.py measures it when ")


def test_a_case_file_gives_its_facts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = tmp_path / "case.json"
    case.write_text(json.dumps({"engine": "0.5.9", "host": {"process_limit": 100}}))
    _, out, _ = launch(capsys, "--case", str(case), "--trace", "thread-creation-blocked")
    assert f"host.process_limit is at least 1 — 100, given in {case}" in out


def test_a_fact_of_a_live_host_names_host_and_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = tmp_path / "cache"
    cache.write_text("a file where a folder should be")
    hosts = {"local": {"python": sys.executable, "work_dir": str(tmp_path), "env": {"PYTHONPATH": str(FAKE_ENGINE)}}}
    (tmp_path / "hosts.yaml").write_text(json.dumps({"hosts": hosts}))
    path = tmp_path / "p.yaml"
    path.write_text(f"model: {{path: {tmp_path}}}\nflags: {{device: cpu}}\nenv: {{TRITON_CACHE_DIR: {cache}}}\n")
    words = [str(path), "--host", "local", "--hosts-file", str(tmp_path / "hosts.yaml"), "--fast"]
    code, out, _ = launch(capsys, *words, "--json", "--trace", "triton-cache-unusable")
    document = json.loads(out)
    step = steps(document["trace"]["rules"][0]["condition"])["host.triton_cache_writable"]
    assert (step["value"], step["holds"]) == (False, True)
    assert step["origin"] == "read from local by launcher/hostside/host_facts.py"
    assert code == 2 and "triton-cache-unusable" in {item["id"] for item in document["findings"]}


@pytest.mark.parametrize("words", [["check", "x.yaml"], ["log", NEXTN], ["run", "last"], ["last-crash"]])
def test_an_unknown_id_is_refused_with_a_suggestion(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    table = LAUNCH if words[0] == "check" else DIAGNOSE
    assert run("launch" if words[0] == "check" else "diagnose", table, [*words, "--trace", "trtllm-moe-on-sm12"]) == 2
    shown = capsys.readouterr()
    assert "did you mean `trtllm-moe-on-sm120`" in shown.err and shown.out == ""


def test_a_log_shows_its_patterns_with_lines(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = diagnose(capsys, "log", NEXTN, "--trace", "speculation-without-extra-buffer")
    assert code == 1
    assert re.search(r"^pattern 1  yes      weight \w+, fires on line 7$", out, re.M)
    assert "no_buffer`: line 26" in out
    assert out.rstrip().endswith("result     It fired: it names the cause.")


def test_a_log_with_a_trace_is_diagnosed_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    for log in (NEXTN, str(CORPUS / "0.5.23-cpu" / "a-normal.log")):
        code, plain, _ = diagnose(capsys, "log", log, "--json")
        traced_code, traced, _ = diagnose(capsys, "log", log, "--json", "--trace", RULE)
        document = json.loads(traced)
        assert document.pop("trace")["id"] == RULE
        assert (traced_code, document) == (code, json.loads(plain))


def test_facts_of_the_caller_override_those_of_a_log_and_name_their_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, facts = str(CORPUS / "0.5.23-cpu" / "a-normal.log"), tmp_path / "facts.json"
    facts.write_text(json.dumps({"observed": {"kind": "accuracy-drop"}, "model": {"name": "Qwen3-Next"}}))
    slug = "prefix-hit-restores-wrong-state"
    _, out, _ = diagnose(capsys, "log", log, "--json", "--facts", str(facts), "--trace", slug)
    shown = steps(json.loads(out)["trace"]["patterns"][0]["condition"])
    assert shown["observed.kind"]["origin"] == f"given in {facts}"
    assert shown["model.hybrid"]["origin"] == "derived by checks/facts/derived/model_families.py"


def test_a_trace_in_markdown_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert diagnose(capsys, "log", NEXTN, "--markdown", "--trace", RULE)[0] == 2


def test_a_run_is_traced_with_its_recorded_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"id": "r1", "state": "crashed", "profile": "p", "host": "h"}))
    (folder / "launch.json").write_text(json.dumps({"engine": "0.5.11", "flags": {"speculative-algorithm": "NEXTN"}}))
    (folder / "server.log").write_bytes(Path(NEXTN).read_bytes())
    monkeypatch.setenv("SGLANG_LAUNCHER_STATE", str(tmp_path))
    code, out, _ = diagnose(capsys, "run", str(folder), "--json", "--trace", "prefix-hit-restores-wrong-state")
    document = json.loads(out)["trace"]
    assert code == 1 and document["release"] == "0.5.11" and document["winner"] == "speculation-without-extra-buffer"
    shown = steps(document["patterns"][0]["condition"])
    assert shown["launch.speculative"]["value"] is True
