"""The printed form of `--trace`, for people and as JSON; it never changes a verdict or an exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from checks.before.rule_trace import RuleTrace, TracedRule
from checks.catalog.conditions import Step
from checks.during.trace import CauseTrace, TracedPattern, TracedText
from checks.vocabulary import Role, Severity
from launcher.cli.app import DIAGNOSE, LAUNCH, run
from launcher.cli.trace_view import Known, cause_document, cause_rows, plain_row, rule_document, rule_rows, write
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


KNOWN = Known(facts={"flag.tp-size": "2", "flag.long": "x" * 500}, sources={"flag.": "set in p.yaml:1:1"})
NESTED = Step(
    word="all",
    holds=None,
    steps=(
        Step(word="equals", name="flag.tp-size", operand="2", value="2", holds=True),
        Step(word="any", holds=None, steps=(Step(word="equals", name="host.x", operand=1, known=False, holds=None),)),
        Step(word="equals", name="flag.long", operand="y", value="x" * 500, holds=False),
    ),
)


def rules(*, applies: bool = True, release: str = "0.5.23") -> RuleTrace:
    rule = TracedRule(number=1, severity=Severity.ERROR, message="m", engine=">=0.5", applies=applies, condition=NESTED)
    return RuleTrace(
        id="c", release=release, engine="<0.6", applies=applies, rules=(rule,), fired=0, sentence="It did not fire."
    )


def patterns(*texts: TracedText, line: int = 0, speaks: bool = False, role: Role = Role.CAUSE) -> CauseTrace:
    pattern = TracedPattern(
        number=1, weight="usual", yields_to=("other",), engine=(">=0.5", ""), applies=False, texts=texts,
        condition=None, line=line, speaks=speaks, reason="",
    )  # fmt: skip
    return CauseTrace(
        id="c", role=role, release="", patterns=(pattern,), fired=speaks, winner="", sentence="It did not fire."
    )


def test_inner_conditions_are_indented_and_unknown_is_a_word_of_its_own() -> None:
    lines = [plain_row(row) for row in rule_rows(rules(), KNOWN)]
    assert lines[1].startswith("rule 1     unknown  error, SGLang >=0.5: m")
    assert lines[2] == "  yes      flag.tp-size is 2 — 2, set in p.yaml:1:1"
    assert lines[3] == "  unknown  any:"
    assert lines[4].startswith("  unknown    host.x is 1 — unknown: ")
    assert lines[-1] == "result     It did not fire."


def test_a_pipe_receives_one_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    write(rule_rows(rules(), KNOWN))
    assert capsys.readouterr().out.splitlines() == [plain_row(row) for row in rule_rows(rules(), KNOWN)]


def test_a_value_that_fills_the_screen_is_cut_in_rows_and_whole_in_json() -> None:
    assert max(len(plain_row(row)) for row in rule_rows(rules(), KNOWN)) < 250
    steps = rule_document(rules(), KNOWN)["rules"][0]["condition"]["steps"]
    assert steps[2]["value"] == "x" * 500


def test_a_release_that_a_rule_excludes_is_named_as_such() -> None:
    excluded = [row.text for row in rule_rows(rules(applies=False), KNOWN)]
    assert ["excludes this release" in text for text in excluded[:2]] == [True, True]
    assert not any("excludes this release" in row.text for row in rule_rows(rules(), KNOWN))


def test_an_unknown_release_is_said_to_be_unknown() -> None:
    assert "judged for an unknown release" in next(rule_rows(rules(release=""), KNOWN)).text
    assert next(cause_rows(patterns(), KNOWN)).text == "c (cause), unknown SGLang release"


@pytest.mark.parametrize(
    ("kind", "lines", "row"),
    [
        ("all", (3, 9), "yes      all `x`: line 3, 9"),
        ("all", (), "no       all `x`: on no line"),
        ("without", (), "yes      without `x`: on no line"),
        ("without", (4,), "no       without `x`: line 4"),
    ],
)
def test_a_text_that_must_be_absent_holds_where_it_is_not(kind: str, lines: tuple[int, ...], row: str) -> None:
    text = TracedText(kind=kind, regex="x", lines=lines)
    assert [plain_row(item).strip() for item in cause_rows(patterns(text), KNOWN)][2] == row


@pytest.mark.parametrize(
    ("line", "speaks", "words"), [(7, True, "fires on line 7"), (0, True, "fires"), (0, False, "does not fire")]
)
def test_a_pattern_says_where_it_fires(line: int, speaks: bool, words: str) -> None:
    row = list(cause_rows(patterns(line=line, speaks=speaks), KNOWN))[1]
    assert row.text == f"weight usual, yields to other, SGLang >=0.5, which excludes this release, {words}"


def test_json_has_every_field_of_a_pattern() -> None:
    text = TracedText(kind="all", regex="x", lines=(3,))
    document = cause_document(patterns(text, line=3, speaks=True), KNOWN)
    [pattern] = document["patterns"]
    assert (document["role"], document["fired"], document["release"]) == ("cause", True, "")
    assert pattern["texts"] == [{"kind": "all", "regex": "x", "lines": [3]}]
    assert (pattern["condition"], pattern["engine"], pattern["line"]) == (None, [">=0.5", ""], 3)


def test_json_keeps_null_for_what_is_undecided() -> None:
    rule = rule_document(rules(), KNOWN)["rules"][0]
    unknown = rule["condition"]["steps"][1]["steps"][0]
    assert (rule["holds"], unknown["holds"], unknown["known"]) == (None, None, False)
