"""Faulty entries that the lint must report, each with one thing wrong, and what it must not report."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import KNOWLEDGE
from checks.catalog.entries import load
from checks.during.signature_build import build
from checks.during.signature_index import Index
from checks.lint.entry_faults import holds_for_releases, lint
from checks.lint.pattern_faults import patterns_fire, yields_with_reason

REMEDY = "remedies: [{text: x}]\n"


def cause(root: Path, name: str, text: str, **logs: str) -> Path:
    """A folder under `root`; each log is written as `match-<name>.log`."""
    folder = root / "causes" / name
    folder.mkdir(parents=True)
    (folder / "cause.yaml").write_text(f"title: {name}\nwhy: because\n{REMEDY}{text}")
    for log, content in logs.items():
        (folder / f"match-{log}.log").write_text(content)
    return folder


def raised(message: str) -> str:
    return f'Traceback (most recent call last):\n  File "/a/sglang/srt/x.py", line 1, in f\n{message}\n'


def index(root: Path) -> Index:
    """The index of what was written under `root`, with the phases that ship."""
    if not (root / "phases").exists():
        (root / "phases").symlink_to(KNOWLEDGE / "phases")
    return build(root)


def yield_faults(root: Path, name: str) -> list[str]:
    return list(yields_with_reason(load(root / "causes" / name), index(root)))


def test_a_pattern_without_a_log_is_reported_with_its_place(tmp_path: Path) -> None:
    text = "during:\n  - all: ['^KeyError: 1']\n  - all: ['^KeyError: 2']\n"
    folder = cause(tmp_path, "two-ways", text, first=raised("KeyError: 1"))
    [fault] = patterns_fire(load(folder), index(tmp_path))
    assert fault.startswith("causes/two-ways/cause.yaml:6: ")
    (folder / "match-second.log").write_text(raised("KeyError: 2"))
    assert list(patterns_fire(load(folder), index(tmp_path))) == []


def test_a_log_proves_a_pattern_only_with_the_facts_beside_it(tmp_path: Path) -> None:
    text = "during:\n  - all: ['^KeyError: 1']\n    when: {flag.page-size: '64'}\n"
    folder = cause(tmp_path, "with-a-flag", text, first=raised("KeyError: 1"))
    assert len(list(patterns_fire(load(folder), index(tmp_path)))) == 1
    (folder / "match-first.facts.yaml").write_text("flags: {page-size: '64'}\n")
    assert list(patterns_fire(load(folder), index(tmp_path))) == []


def test_a_log_of_another_entry_proves_nothing(tmp_path: Path) -> None:
    cause(tmp_path, "one", "during:\n  - all: ['^KeyError']\n", first=raised("KeyError: 1"))
    folder = cause(tmp_path, "other", "during:\n  - all: ['^KeyError']\n")
    assert len(list(patterns_fire(load(folder), index(tmp_path)))) == 1


def test_a_pattern_of_facts_alone_needs_no_log(tmp_path: Path) -> None:
    folder = cause(tmp_path, "observed", "during:\n  - when: {observed.kind: garbled}\n")
    assert list(patterns_fire(load(folder), index(tmp_path))) == []


def test_yielding_to_nobody_is_reported(tmp_path: Path) -> None:
    cause(tmp_path, "general", "during:\n  - all: ['^KeyError']\nyields-to: [specail]\n", one=raised("KeyError: 1"))
    cause(tmp_path, "special", "during:\n  - all: ['^KeyError: 1']\n", one=raised("KeyError: 1"))
    [fault] = yield_faults(tmp_path, "general")
    assert "`specail`, which is not an entry with patterns" in fault and "`special`" in fault


def test_a_pair_that_never_meets_is_reported(tmp_path: Path) -> None:
    cause(tmp_path, "general", "during:\n  - all: ['^KeyError']\nyields-to: [special]\n", one=raised("KeyError: 1"))
    special = cause(tmp_path, "special", "during:\n  - all: ['^ValueError']\n", one=raised("ValueError: 1"))
    [fault] = yield_faults(tmp_path, "general")
    assert "`special`, but no match-*.log of either needs that" in fault
    (special / "match-both.log").write_text(raised("ValueError: 1") + "\n" + raised("KeyError: 1"))
    assert len(yield_faults(tmp_path, "general")) == 1  # two crashes
    (special / "match-chain.log").write_text(
        raised("ValueError: 1")
        + "\nThe above exception was the direct cause of the following exception:\n\n"
        + raised("KeyError: 1")
    )
    assert yield_faults(tmp_path, "general") == []


@pytest.mark.parametrize("level", ["entry", "pattern"])
def test_a_pair_that_meets_is_not_reported(tmp_path: Path, level: str) -> None:
    text = "during:\n  - all: ['^KeyError']\n" + ("    " if level == "pattern" else "") + "yields-to: [special]\n"
    cause(tmp_path, "general", text)
    cause(tmp_path, "special", "during:\n  - all: ['^KeyError: 1']\n", one=raised("KeyError: 1"))
    assert yield_faults(tmp_path, "general") == []


@pytest.mark.parametrize(
    ("yields", "circle"),
    [
        ({"a": "a"}, "a → a"),
        ({"a": "b", "b": "a"}, "a → b → a"),
        ({"a": "b", "b": "c", "c": "a"}, "a → b → c → a"),
        ({"a": "b", "b": "c", "c": "b"}, None),
    ],
)
def test_a_circle_is_reported_on_those_that_are_in_it(
    tmp_path: Path, yields: dict[str, str], circle: str | None
) -> None:
    for name, to in {"c": "", **yields}.items():
        cause(tmp_path, name, f"during:\n  - all: ['^KeyError']\nyields-to: [{to}]\n", one=raised("KeyError: 1"))
    faults = [fault for fault in yield_faults(tmp_path, "a") if "cycle" in fault]
    assert faults == ([f"yields in a cycle: {circle}"] if circle else [])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("engine: '<0.4.0'\n", "the entry"),
        ("during:\n  - all: ['^KeyError']\n    engine: '>9'\n", "cause.yaml:5"),
        ("before: [{when: {flag.x: '1'}, severity: info, message: hm, engine: '<0.4.8'}]\n", "`before` (hm)"),
        ("engine: '>=0.5.10'\nduring:\n  - all: ['^KeyError']\n    engine: '<0.5.10'\n", "cause.yaml:6"),
    ],
)
def test_a_range_without_a_release_is_reported(tmp_path: Path, text: str, what: str) -> None:
    faults = list(holds_for_releases(load(cause(tmp_path, "never", text))))
    assert faults and any(what in fault and "contains no known release" in fault for fault in faults)


def test_a_range_with_a_release_is_not_reported(tmp_path: Path) -> None:
    text = "engine: '>=0.5.10'\nduring:\n  - all: ['^KeyError']\n    engine: '<0.5.11'\n"
    assert list(holds_for_releases(load(cause(tmp_path, "once", text)))) == []


def test_a_remedy_for_no_release_is_reported(tmp_path: Path) -> None:
    folder = cause(tmp_path, "never", "")
    (folder / "cause.yaml").write_text("title: t\nwhy: w\nremedies: [{text: upgrade, engine: '<0.4.10'}]\n")
    [fault] = holds_for_releases(load(folder))
    assert fault.startswith("a remedy (upgrade): `engine: <0.4.10` contains no known release")


def test_the_rules_are_asked_of_every_entry(tmp_path: Path) -> None:
    text = "engine: '<0.4.0'\nduring:\n  - all: ['^KeyError']\nyields-to: [nobody]\n"
    folder = cause(tmp_path, "all-wrong", text, one="nothing\n")
    faults = "\n".join(lint([load(folder)], index(tmp_path)))
    for words in ("fires on no match-*.log", "yields to `nobody`", "contains no known release"):
        assert words in faults
