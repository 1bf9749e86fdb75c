"""Flags under their newest names: renames, negations, switches that are off, and one option given twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from checks.engine.canonical import canonical_is_negatable, given_twice, negated_name, normalise
from checks.engine.flag_schema import load
from checks.vocabulary import FlagValue, Severity


@pytest.mark.parametrize(
    ("version", "flags", "canonical"),
    [
        ("0.5.9", {"tp": "8"}, {"tp-size": "8"}),
        ("0.5.9", {"--tensor-parallel-size": "8"}, {"tp-size": "8"}),
        ("0.5.9", {"mamba-scheduler-strategy": "x"}, {"mamba-radix-cache-strategy": "x"}),
        ("0.5.20", {"mamba-scheduler-strategy": "x"}, {"mamba-radix-cache-strategy": "x"}),
        ("0.5.9", {"enable-reasoning": True}, {"enable-reasoning": True}),
        ("0.5.9", {"trust-remote-code": True}, {"trust-remote-code": True}),
        ("0.5.9", {"trust-remote-code": False}, {}),
        ("0.5.9", {"no-such-flag": False}, {}),
        ("0.5.23", {"enable-tf32-matmul": True}, {"enable-tf32-matmul": True}),
        ("0.5.23", {"enable-tf32-matmul": False}, {"enable-tf32-matmul": False}),
        ("0.5.23", {"no-enable-tf32-matmul": True}, {"enable-tf32-matmul": False}),
        ("0.5.23", {"no-enable-tf32-matmul": False}, {"enable-tf32-matmul": True}),
        ("0.5.9", {"cuda-graph-bs": ["1", "2"]}, {"cuda-graph-bs-decode": ["1", "2"]}),
        ("0.5.9", {}, {}),
    ],
)
def test_a_flag_is_put_under_its_newest_name(version: str, flags: dict[str, Any], canonical: dict[str, Any]) -> None:
    assert normalise(flags, load(version)) == (canonical, [])


@pytest.mark.parametrize(
    ("version", "dropped", "kept", "severity", "value"),
    [
        ("0.5.9", ("tp-size", "4"), ("tensor-parallel-size", "8"), Severity.ERROR, "8"),
        ("0.5.9", ("tensor-parallel-size", "8"), ("tp-size", "4"), Severity.ERROR, "4"),
        ("0.5.9", ("tp-size", "8"), ("tensor-parallel-size", "8"), Severity.WARNING, "8"),
        ("0.5.23", ("enable-tf32-matmul", True), ("no-enable-tf32-matmul", True), Severity.ERROR, False),
    ],
)
def test_of_two_spellings_the_last_one_counts_and_a_difference_is_an_error(
    version: str, dropped: tuple[str, FlagValue], kept: tuple[str, FlagValue], severity: Severity, value: object
) -> None:
    canonical, [finding] = normalise(dict([dropped, kept]), load(version))
    assert list(canonical.values()) == [value]
    assert (finding.id, finding.severity, finding.subject) == ("flag-given-twice", severity, f"flag.{kept[0]}")
    assert ("SGLang silently uses the last value" in finding.message) is (severity is Severity.ERROR)
    assert f"--{dropped[0]} and --{kept[0]} are names of one option" in finding.message
    assert finding.remedies[0].unset == (dropped[0],)


def test_a_retired_switch_is_compared_by_the_value_it_stores() -> None:
    schema = load("0.5.14")
    pairs: Mapping[str, list[tuple[str, FlagValue]]] = {
        "error": [("disable-piecewise-cuda-graph", True), ("cuda-graph-backend-prefill", "full")],
        "warning": [("disable-piecewise-cuda-graph", True), ("cuda-graph-backend-prefill", "disabled")],
    }
    for severity, pair in pairs.items():
        assert [str(finding.severity) for finding in given_twice(pair, schema)] == [severity]


def test_a_switch_that_is_off_is_not_given() -> None:
    assert normalise({"tp-size": False, "tensor-parallel-size": "8"}, load("0.5.9")) == ({"tp-size": "8"}, [])
    assert list(given_twice([("no-such-flag", "1"), ("no-such-flag", "2")], load("0.5.9"))) == []


@pytest.mark.parametrize(
    ("name", "positive", "negatable"),
    [
        ("no-enable-tf32-matmul", "enable-tf32-matmul", True),
        ("enable-tf32-matmul", None, True),
        ("trust-remote-code", None, False),
        ("no-such-flag", None, False),
    ],
)
def test_only_some_options_have_a_negation(name: str, positive: str | None, negatable: bool) -> None:
    assert negated_name(name, load("0.5.23")) == positive
    assert canonical_is_negatable(name, load("0.5.23")) is negatable
