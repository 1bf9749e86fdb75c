"""Records and their few derived properties: version numbers, ranges of releases, health of a diagnosis."""

from __future__ import annotations

import pytest

from checks.vocabulary import Diagnosis, EngineRange, Evidence, LogVerdict, Match, Role, flag_key, parse_version


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.5.10", "0.5.10"),
        ("v0.5.10", "0.5.10"),
        (" 0.5.10 ", "0.5.10"),
        ("0.5.10.post1.dev12+gabc", "0.5.10.post1.dev12+gabc"),
        ("0.5.10rc1", "0.5.10rc1"),
        ("unknown", None),
        ("main", None),
        ("", None),
    ],
)
def test_a_release_number_is_read_or_is_none(text: str, number: str | None) -> None:
    found = parse_version(text)
    assert (str(found) if found else None) == number


@pytest.mark.parametrize(
    ("text", "version", "inside"),
    [
        (">=0.5.10,<0.5.14", "0.5.10", True),
        (">=0.5.10,<0.5.14", "0.5.13.post1", True),
        (">=0.5.10,<0.5.14", "0.5.14", False),
        (">=0.5.10,<0.5.14", "0.5.9", False),
        ("<0.5.10", "0.5.10.dev3+gabc", False),
        (">=0.5.10", "0.5.10.dev3+gabc", True),
        ("<0.5.14", "0.5.14rc1", False),
        ("==0.5.10", "0.5.10.post2", True),
        ("", "0.5.10", True),
        (">=0.5.10", "", True),
        (">=0.5.10", None, True),
        (">=0.5.10", "banana", True),
    ],
)
def test_a_build_on_the_way_to_a_release_counts_as_that_release_and_an_unknown_one_as_any(
    text: str, version: str | None, inside: bool
) -> None:
    assert EngineRange(text).contains(version) is inside


def test_a_malformed_range_is_an_error_only_where_a_version_is_asked_for() -> None:
    with pytest.raises(ValueError, match="newest"):
        EngineRange("newest").contains("0.5.10")
    assert EngineRange("newest").contains(None)


@pytest.mark.parametrize("verdict", LogVerdict)
def test_only_a_log_without_a_failure_is_healthy(verdict: LogVerdict) -> None:
    found = Diagnosis(verdict=verdict, cause=None, sentence="")
    assert found.healthy is (verdict in (LogVerdict.HEALTHY, LogVerdict.STOPPED))


def test_a_match_stands_at_its_first_evidence() -> None:
    evidence = (Evidence(text="a", line=7), Evidence(text="b", line=3))
    assert Match(id="x", role=Role.CAUSE, title="", evidence=evidence).line == 7
    assert Match(id="x", role=Role.CAUSE, title="", evidence=()).line == 0


@pytest.mark.parametrize("name", ["tp-size", "--tp-size", "--tp_size", "tp_size"])
def test_a_flag_has_one_name_however_it_is_spelled(name: str) -> None:
    assert flag_key(name) == "tp-size"
