"""The rules as one document: the same rules come out again, and only causes with rules are in it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from checks.before.rule_index import build, load, of_entries, packages
from checks.catalog.entries import entries
from checks.catalog.yaml_reader import YamlError
from checks.vocabulary import Severity

RULES = """\
title: t
engine: '>=0.5.4'
before:
  - when: {host.sm: 90, package.torch: {present: true}, any: [{package.a-b: '1'}, {flag.x: true}]}
    severity: error
    message: '{host.sm}'
    engine: '<0.5.20'
    subject: flag.x
  - {when: {flag.y: 8}, severity: info, message: second}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for place, text in {
        "causes/ruled/cause.yaml": RULES,
        "causes/unruled/cause.yaml": "title: t\nduring: [{all: [x]}]\n",
        "signs/odd/sign.yaml": "role: benign\ntitle: t\n",
    }.items():
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text(text)
    return tmp_path


def test_rules_come_out_of_the_document_as_they_went_in(root: Path) -> None:
    [item] = load(build(root))
    assert (item.id, item.engine.text) == ("ruled", ">=0.5.4")
    first, second = item.before
    assert (first.severity, first.message, first.subject) == (Severity.ERROR, "{host.sm}", "flag.x")
    assert first.engine.text == "<0.5.20"
    assert first.when.holds({"host.sm": 90, "package.torch": "2.9", "flag.x": True})
    assert not first.when.holds({"host.sm": 90, "package.torch": "2.9"})
    assert second.when.holds({"flag.y": "8"}) and second.severity is Severity.INFO


def test_every_rule_that_ships_survives_the_document() -> None:
    direct, read = of_entries(), load(build())
    assert len(direct) > 100
    for one, other in zip(direct, read, strict=True):
        assert (one.id, one.engine) == (other.id, other.engine)
        for rule, again in zip(one.before, other.before, strict=True):
            assert (rule.message, rule.severity, rule.engine, rule.subject) == (
                again.message, again.severity, again.engine, again.subject,
            )  # fmt: skip
            assert rule.when.names == again.when.names


def test_causes_without_rules_are_left_out(root: Path) -> None:
    assert [item.id for item in of_entries(entries(root))] == ["ruled"]
    assert of_entries([]) == ()


def test_the_packages_that_rules_look_at_are_named(root: Path) -> None:
    assert packages(load(build(root))) == {"torch", "a-b"}
    assert packages([]) == frozenset()


def test_a_malformed_entry_is_named_while_building(root: Path) -> None:
    (root / "causes" / "ruled" / "cause.yaml").write_text(RULES.replace("severity: info", "severity: odd"))
    with pytest.raises(YamlError, match=r"causes/ruled/cause.yaml:9:\d+: `odd` is not one of"):
        build(root)


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"{",
        b"[1]",
        msgspec.json.encode([{"id": "x"}]),
        msgspec.json.encode([{"id": "x", "engine": "", "before": [{"when": {}}]}]),
    ],
)
def test_a_damaged_document_is_an_error_that_the_cache_expects(document: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        load(document)
