"""SARIF for code scanning: valid by the official schema, exact to the column, stable when lines move."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from checks.vocabulary import Severity
from launcher.gate.outputs.sarif import fingerprint, sarif
from launcher.gate.report import Place, Remark, Report, Status
from tests.support.gate_fixtures import remark, report
from tests.support.paths import DATA

SCHEMA = json.loads((DATA / "schemas/sarif-2.1.0.json").read_text())
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
EVERY = report(*(remark(status) for status in Status))


def run_of(judged: Report) -> dict[str, Any]:
    log = json.loads(sarif(judged))
    VALIDATOR.validate(log)
    [run] = log["runs"]
    return dict(run)


def results(*remarks: Remark) -> list[dict[str, Any]]:
    return list(run_of(report(*remarks))["results"])


def test_a_result_is_an_error_at_the_exact_column_of_its_remark() -> None:
    [first, *_] = run_of(EVERY)["results"]
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


def test_accepted_and_known_remarks_are_suppressed_and_expected_ones_are_left_out() -> None:
    rows = run_of(EVERY)["results"]
    assert [(item["properties"]["status"], "suppressions" in item) for item in rows] == [
        ("fail", False), ("inconclusive", False), ("accepted", True), ("known", True), ("note", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "severity", "level"),
    [
        (Status.FAIL, Severity.INFO, "error"),
        (Status.KNOWN, Severity.ERROR, "warning"),
        (Status.NOTE, Severity.WARNING, "warning"),
        (Status.NOTE, Severity.INFO, "note"),
    ],
)
def test_only_a_remark_that_blocks_is_an_error(status: Status, severity: Severity, level: str) -> None:
    [result] = results(remark(status, severity=severity))
    assert result["level"] == level


def test_a_fingerprint_does_not_change_with_lines_or_wording() -> None:
    moved = remark(place=Place(path="profiles/a.yaml", line=50), message="another", targets=())
    assert fingerprint(moved) == fingerprint(remark())
    [result] = results(remark())
    assert fingerprint(remark()) in result["partialFingerprints"].values()


@pytest.mark.parametrize(
    "changes",
    [{"rule": "flag-deprecated"}, {"profile": "b"}, {"subject": "flag.y"}, {"place": Place(path="profiles/b.yaml")}],
    ids=lambda changes: next(iter(changes)),
)
def test_a_fingerprint_changes_with_what_the_remark_is_about(changes: dict[str, Any]) -> None:
    assert fingerprint(remark(**changes)) != fingerprint(remark())


def test_a_fingerprint_does_not_confuse_a_profile_with_a_subject() -> None:
    assert fingerprint(remark(profile="ab", subject="c")) != fingerprint(remark(profile="a", subject="bc"))


def test_each_rule_is_described_once_and_its_results_point_to_it() -> None:
    other = remark(rule="flag-deprecated", why="It goes away.", subject="flag.z")
    run = run_of(report(remark(), other, remark(subject="flag.y")))
    rules = run["tool"]["driver"]["rules"]
    assert [item["id"] for item in rules] == ["flag-unknown-to-engine", "flag-deprecated"]
    assert [rules[item["ruleIndex"]]["id"] == item["ruleId"] for item in run["results"]] == [True] * 3
    assert rules[0]["fullDescription"]["text"] == "--x is not an option"
    assert rules[1]["fullDescription"]["text"] == "It goes away."


def test_a_path_is_a_valid_uri_and_keeps_bytes_that_are_not_text() -> None:
    path = b"profiles/gr\xc3\xbcn 100%\xff.yaml".decode("utf-8", "surrogateescape")
    [result] = results(remark(place=Place(path=path)))
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "profiles/gr%C3%BCn%20100%25%FF.yaml"
    assert fingerprint(remark(subject="\ud800")) != fingerprint(remark(subject="\ud801"))


@pytest.mark.parametrize(
    ("remarks", "code"), [((), 0), ((Status.NOTE,), 0), ((Status.INCONCLUSIVE,), 5), ((Status.FAIL,), 1)]
)
def test_the_exit_code_in_the_log_is_that_of_the_command(remarks: tuple[Status, ...], code: int) -> None:
    [invocation] = run_of(report(*(remark(status) for status in remarks)))["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (True, code)


def test_tiers_do_not_replace_each_other_in_code_scanning() -> None:
    static, replay = (run_of(report(tier=tier))["automationDetails"]["id"] for tier in ("static", "replay"))
    assert static != replay


def test_a_remark_without_a_profile_has_no_logical_location() -> None:
    with_profile, without = results(remark(), remark(profile=""))
    assert with_profile["locations"][0]["logicalLocations"] == [{"name": "a", "kind": "profile"}]
    assert "logicalLocations" not in without["locations"][0]


def test_a_message_names_the_releases_and_every_remedy() -> None:
    [result] = results(remark(remedies=("Leave it out.", "Upgrade.")))
    assert result["message"]["text"].splitlines() == [
        "--x is not an option [0.5.22, 0.5.23]", "Remedy: Leave it out.", "Remedy: Upgrade.",
    ]  # fmt: skip
