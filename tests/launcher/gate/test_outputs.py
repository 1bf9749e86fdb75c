"""The formats for CI systems: each is valid by its own rules and names the line of a remark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.vocabulary import Severity
from launcher.gate.outputs.codequality import codequality
from launcher.gate.outputs.github import workflow_commands
from launcher.gate.outputs.junit import junit
from launcher.gate.outputs.markdown import LARGEST, MARK, markdown
from launcher.gate.outputs.sarif import sarif
from launcher.gate.report import Affected, Comparison, Difference, Place, Remark, Report, Status, Trial
from tests.support.gate_fixtures import Judged
from tests.support.gate_repo import Repo
from tests.support.paths import DATA

SCHEMA = json.loads((DATA / "schemas/sarif-2.1.0.json").read_text())
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)


def remark(status: Status = Status.FAIL, **changes: Any) -> Remark:
    fields = {
        "rule": "flag-unknown-to-engine", "status": status, "severity": Severity.ERROR,
        "message": "--x is not an option", "place": Place(path="profiles/a.yaml", line=5, column=3),
        "profile": "a", "subject": "flag.x",
        "targets": ("0.5.22", "0.5.23"), "remedies": ("Leave it out.",),
    }  # fmt: skip
    return Remark(**{**fields, **changes})


def report(*remarks: Remark, **changes: Any) -> Report:
    affected = (
        Affected(name="a", change="changed", path="profiles/a.yaml", reasons=("its file changed",),
                 differences=(Difference(kind="flag", name="x", before=None, after="1"),)),
    )  # fmt: skip
    fields = {"tier": "static", "base": "0" * 40, "base_note": "compared with main", "affected": affected}
    return Report(**{**fields, "remarks": remarks, **changes})


EVERY = report(*(remark(status) for status in Status))
TEXT = st.text(st.characters(exclude_categories=()), max_size=40)


def test_sarif_is_valid_by_the_official_schema_and_exact_to_the_column() -> None:
    log = json.loads(sarif(EVERY))
    VALIDATOR.validate(log)
    [first, *_] = log["runs"][0]["results"]
    assert first["level"] == "error"
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "profiles/a.yaml", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 5, "startColumn": 3},
    }


def test_the_official_schema_rejects_a_log_that_is_not_sarif() -> None:
    log = json.loads(sarif(EVERY))
    del log["runs"][0]["tool"]
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(log)


def test_sarif_suppresses_accepted_and_known_remarks_and_omits_expected_ones() -> None:
    results = json.loads(sarif(EVERY))["runs"][0]["results"]
    assert [(item["properties"]["status"], "suppressions" in item) for item in results] == [
        ("fail", False), ("inconclusive", False), ("accepted", True), ("known", True), ("note", False),
    ]  # fmt: skip


def test_a_sarif_fingerprint_does_not_change_with_lines_or_wording() -> None:
    def mark(item: Remark) -> Any:
        return json.loads(sarif(report(item)))["runs"][0]["results"][0]["partialFingerprints"]

    assert mark(remark()) == mark(remark(place=Place(path="profiles/a.yaml", line=50), message="another"))
    assert mark(remark()) != mark(remark(subject="flag.y"))


def test_junit_counts_failures_errors_and_skips() -> None:
    root = ElementTree.fromstring(junit(EVERY))
    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6", "failures": "1", "errors": "1", "skipped": "4",
    }  # fmt: skip
    [failure] = root.iter("failure")
    assert "profiles/a.yaml:5:3" in str(failure.text)
    assert "remedy: Leave it out." in str(failure.text)


def test_junit_of_a_clean_profile_is_a_passing_case() -> None:
    root = ElementTree.fromstring(junit(report()))
    assert (root.get("tests"), root.get("failures")) == ("1", "0")


def test_github_annotations_list_errors_first_and_escape_what_would_end_a_command() -> None:
    text = workflow_commands(report(remark(Status.NOTE), remark(message="50% off\n::error::forged", rule="a,b:c")))
    first, second = text.splitlines()
    suffix = " [0.5.22, 0.5.23]%0ARemedy: Leave it out."
    place = "file=profiles/a.yaml,line=5,col=3"
    assert first == f"::error {place},title=a%2Cb%3Ac (a)::50%25 off%0A::error::forged{suffix}"
    assert second == f"::warning {place},title=flag-unknown-to-engine (a)::--x is not an option{suffix}"


def test_gitlab_issues_have_unique_fingerprints_and_a_line() -> None:
    issues = json.loads(codequality(report(remark(), remark(), remark(Status.ACCEPTED))))
    assert [item["severity"] for item in issues] == ["blocker", "blocker"]
    assert len({item["fingerprint"] for item in issues}) == 2
    assert issues[0]["location"] == {"path": "profiles/a.yaml", "lines": {"begin": 5}}


def test_markdown_begins_with_its_mark_and_shows_place_and_change() -> None:
    text = markdown(EVERY)
    assert text.startswith(MARK)
    assert "`profiles/a.yaml:5`" in text
    assert "+ --x: 1" in text


def test_markdown_of_any_text_contains_neither_forged_markup_nor_mentions() -> None:
    text = markdown(report(remark(message="<script>x</script> @team | [a](b) `c`")))
    assert "<script>" not in text
    assert "@team" not in text
    row = next(line for line in text.splitlines() if "script" in line)
    assert row.replace("\\|", "").count("|") == 4


def test_markdown_fits_into_a_comment() -> None:
    many = tuple(remark(message="x" * 200, subject=str(number)) for number in range(1000))
    assert len(markdown(report(*many))) < LARGEST + 200


def test_markdown_shows_a_trial_figure_by_figure() -> None:
    trial = Trial(
        profile="a", host="gpu-box", verdict="worse", message="against the old profile: 1 worse",
        comparisons=(Comparison(name="speed decode", verdict="worse", message="-20.0% (-21.0% to -19.0%)"),),
    )  # fmt: skip
    assert "| speed decode | worse | -20.0% (-21.0% to -19.0%) |" in markdown(report(trials=(trial,)))


@given(message=TEXT, path=TEXT, profile=TEXT)
def test_every_format_is_well_formed_for_any_text(message: str, path: str, profile: str) -> None:
    odd = report(remark(message=message, place=Place(path=path or "x"), profile=profile))
    VALIDATOR.validate(json.loads(sarif(odd)))
    ElementTree.fromstring(junit(odd))
    json.loads(codequality(odd))
    assert len(workflow_commands(odd).split("\n")) == 2
    assert markdown(odd)


def test_the_command_line_writes_every_format(
    repo: Repo, gate: Callable[..., Judged], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.append("profiles/chat.yaml", "  no-such-flag: 1\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    out = tmp_path / "out"
    words = [f"--{name}={out / name}" for name in ("junit", "sarif", "codequality", "markdown")]
    judged = gate(repo, *words)
    assert judged.code == 1
    VALIDATOR.validate(json.loads((out / "sarif").read_text()))
    assert ElementTree.parse(out / "junit").getroot().get("failures") == "1"
    assert len(json.loads((out / "codequality").read_text())) == 1
    assert (out / "markdown").read_text() == (tmp_path / "summary.md").read_text()
    assert "::error file=profiles/chat.yaml,line=5,col=3" in judged.error
