"""`--trace CAUSE`: which entry is traced, with which facts, and what cannot be traced."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from checks.catalog.entries import entry
from checks.facts.launch_evidence import Launch
from launcher.cli.app import DIAGNOSE, LAUNCH, run
from launcher.cli.trace_option import traced_entry, traced_launch
from launcher.errors import UsageError
from tests.support.bench import FAKE_ENGINE
from tests.support.gate_repo import FACTS
from tests.support.paths import CORPUS

NEXTN = str(CORPUS / "0.5.11-h200" / "nextn-nobuf.log")
RULE = "trtllm-moe-on-sm120"


@pytest.fixture
def profile(tmp_path: Path) -> str:
    (tmp_path / "p.yaml").write_text("model: {path: /models/x}\nflags: {tp: 2}\n")
    (tmp_path / "facts.json").write_text(json.dumps(FACTS))
    return str(tmp_path / "p.yaml")


def launch(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run("launch", LAUNCH, ["check", *words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def steps(condition: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {step["fact"]: step for step in condition["steps"] if "fact" in step}


def test_nothing_is_traced_by_default() -> None:
    assert traced_entry("") is None
    assert traced_entry("", as_markdown=True) is None


def test_a_cause_is_traced_by_its_id() -> None:
    traced = traced_entry(RULE)
    assert traced is not None and traced.id == RULE


@pytest.mark.parametrize("slug", ["prose", "../causes", "Ünïcode", RULE.upper(), "*"])
def test_only_a_cause_or_sign_can_be_traced(slug: str) -> None:
    with pytest.raises(UsageError, match="no cause or sign has the id"):
        traced_entry(slug)


def test_an_id_that_resembles_none_is_refused_with_the_list_of_ids() -> None:
    with pytest.raises(UsageError) as refused:
        traced_entry("qqqqqqqqqqqqqqqq")
    assert "launch explain" in refused.value.hint


@pytest.mark.parametrize("words", [["check", "x.yaml"], ["log", NEXTN], ["run", "last"], ["last-crash"]])
def test_an_unknown_id_is_refused_with_a_suggestion(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    table = LAUNCH if words[0] == "check" else DIAGNOSE
    assert run("launch" if words[0] == "check" else "diagnose", table, [*words, "--trace", "trtllm-moe-on-sm12"]) == 2
    shown = capsys.readouterr()
    assert "did you mean `trtllm-moe-on-sm120`" in shown.err and shown.out == ""


def test_a_trace_in_markdown_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("diagnose", DIAGNOSE, ["log", NEXTN, "--markdown", "--trace", RULE]) == 2
    assert "--markdown" in capsys.readouterr().err


def test_the_facts_of_a_trace_name_who_stated_or_derived_them() -> None:
    item = entry(RULE)
    assert item is not None
    launch = Launch(engine="0.5.23", flags={"tp-size": "2"}, gpu={"name": "NVIDIA H100 80GB HBM3", "count": 2})
    trace, known = traced_launch(item, launch, {"flag.tp-size": "set in p.yaml:3:1"}, {})
    assert (trace.id, trace.release) == (RULE, "0.5.23")
    assert known.facts["flag.tp-size"] == "2"
    assert known.sources["flag.tp-size"] == "set in p.yaml:3:1"
    assert known.sources["host.sm12x"].startswith("derived by checks/facts/derived/")


def test_a_statement_of_the_launch_is_not_called_derived() -> None:
    item = entry("glibc-too-old")
    assert item is not None
    stated = {"engine.known": "given by --engine"}
    _, known = traced_launch(item, Launch(engine="0.5.23"), stated, {})
    assert known.sources["engine.known"] == "given by --engine"
    _, known = traced_launch(item, Launch(engine="0.5.23"), {}, {})
    assert known.sources["engine.known"].startswith("worked out by ")


def test_an_accepted_finding_is_traced_with_its_reason() -> None:
    item = entry(RULE)
    assert item is not None
    launch = Launch(
        engine="0.5.10", flags={"moe-runner-backend": "flashinfer_trtllm"}, gpu={"name": "RTX PRO 6000", "count": 1}
    )
    accepted, _ = traced_launch(item, launch, {}, {RULE: "It is measured."})
    assert "the profile accepts it: It is measured" in accepted.sentence
    plain, _ = traced_launch(item, launch, {}, {})
    assert "accepts" not in plain.sentence


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
