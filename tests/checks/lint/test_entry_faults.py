"""Each rule of the lint with an entry that breaks it, and the same entry in good order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from checks import KNOWLEDGE
from checks.catalog.entries import FAMILIES, Entry, entries, load
from checks.during import signature_build
from checks.during.proposed_entry import NEAR_MISS
from checks.lint.entry_faults import (
    behaves_as_stated,
    compiles,
    folders_without_an_entry,
    has_what_it_needs,
    is_finished,
    lint,
    logs_behave,
    names_known_flags,
    names_known_probes,
)
from checks.vocabulary import Role

GOOD = """\
title: Alpha
why: Because.
before:
  - {when: {flag.tp-size: {at_least: 4}, host.sm12x: true}, severity: error, message: m}
during:
  - all: ['^ValueError: alpha$']
remedies:
  - {text: Use fewer., set: {tp-size: '2'}}
cases:
  - {engine: 0.5.10, facts: {flag.tp-size: '8', host.sm: 120}, fires: true}
  - {engine: 0.5.10, facts: {flag.tp-size: '2', host.sm: 120}, fires: false}
family: launch-arguments
"""
SIGN = "role: {role}\ntitle: t\nwhy: w\nduring: [{{all: ['^odd$']}}]\n"
AT = "[2026-11-29 15:25:01 TP0] "
FAILURE = AT + 'Scheduler hit an exception: Traceback (most recent call last):\n  File "/a/x.py", line 1, in f\n'
MATCH, MISS = FAILURE + "ValueError: alpha\n", FAILURE + "ValueError: other\n"


def entry(root: Path, text: str = GOOD, place: str = "causes/alpha", **logs: str) -> Entry:
    """An entry in a knowledge of its own; keyword `match_one` stands for `match-one.log`."""
    folder = root / place
    folder.mkdir(parents=True)
    (folder / ("sign.yaml" if "role:" in text else "cause.yaml")).write_text(text)
    for name, log in (logs or {"match_one": MATCH, "miss_one": MISS}).items():
        suffix = ".facts.yaml" if name.endswith("_facts") else ".log"
        (folder / (name.removesuffix("_facts").replace("_", "-") + suffix)).write_text(log)
    return load(folder)


def faults(rule: Callable[[Entry], Iterator[str]], root: Path, old: str = "", new: str = "") -> list[str]:
    assert old in GOOD
    return list(rule(entry(root, GOOD.replace(old, new))))


def log_faults(root: Path, item: Entry) -> list[str]:
    if not (root / "phases").exists():
        (root / "phases").symlink_to(KNOWLEDGE / "phases")
    return list(logs_behave(item, signature_build.build(root)))


def test_a_sound_entry_has_no_fault(tmp_path: Path) -> None:
    item = entry(tmp_path)
    for rule in (has_what_it_needs, names_known_flags, compiles, behaves_as_stated, names_known_probes):
        assert list(rule(item)) == []
    assert log_faults(tmp_path, item) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("title: Alpha", "title: ''", "`title` is missing"),
        ("why: Because.", "why: ''", "`why` is missing"),
        ("remedies:\n  - {text: Use fewer., set: {tp-size: '2'}}\n", "", "a cause needs a remedy"),
        ("{text: Use fewer., set: {tp-size: '2'}}", "{engine: '>=0.5.9'}", "a remedy is empty"),
        ("fires: true", "fires: false", "`before` needs a case that fires and a case that does not"),
        ("fires: false", "fires: true", "`before` needs a case that fires and a case that does not"),
    ],
)
def test_an_incomplete_entry_is_reported(tmp_path: Path, old: str, new: str, fault: str) -> None:
    assert faults(has_what_it_needs, tmp_path, old, new) == [fault]


def test_a_pattern_needs_a_log_that_shows_it_and_one_that_does_not(tmp_path: Path) -> None:
    bare = entry(tmp_path, place="causes/bare", notes="")
    assert list(has_what_it_needs(bare)) == ["`during` needs a match-*.log", "`during` needs a miss-*.log"]
    seen = GOOD.replace("all: ['^ValueError: alpha$']", "when: {observed.kind: hang}")
    assert list(has_what_it_needs(entry(tmp_path, seen, "causes/seen", notes=""))) == []


@pytest.mark.parametrize("family", ["performance", ""])
def test_a_family_that_no_other_cause_has_is_reported_with_all_families(tmp_path: Path, family: str) -> None:
    [fault] = faults(has_what_it_needs, tmp_path, "family: launch-arguments", f"family: '{family}'")
    assert fault.startswith(f"`family: {family or '(missing)'}` is not one of checkpoint-files, ")


def test_the_families_are_those_of_the_shipped_causes() -> None:
    assert {item.family for item in entries() if item.role is Role.CAUSE} == set(FAMILIES)


def test_what_the_scaffold_leaves_to_its_author_is_reported(tmp_path: Path) -> None:
    text = GOOD.replace("title: Alpha", "title: Alpha   # TODO the bad state")
    item = entry(tmp_path, text, match_one=MATCH, miss_one=f"ValueError: {NEAR_MISS}\n")
    assert list(is_finished(item)) == [
        "cause.yaml:1: a TODO of the draft is left",
        "miss-one.log is still the placeholder of the draft; put a similar message of another cause there",
    ]
    assert list(is_finished(entry(tmp_path, place="causes/done"))) == []


def test_a_sign_needs_no_remedy(tmp_path: Path) -> None:
    assert list(has_what_it_needs(entry(tmp_path, SIGN.format(role="benign"), "signs/x"))) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("set: {tp-size", "set: {no-such-flag", "a remedy sets --no-such-flag, which 0.4.10"),
        (
            "set: {tp-size: '2'}",
            "set: {attn-dp-size: '2'}, engine: '>=0.5.20'",
            "a remedy sets --attn-dp-size, which 0.5.20, 0.5.21 does not have",
        ),
    ],
)
def test_a_flag_that_does_not_exist_where_it_is_named_is_reported(
    tmp_path: Path, old: str, new: str, fault: str
) -> None:
    [found] = faults(names_known_flags, tmp_path, old, new)
    assert found.startswith(fault)


@pytest.mark.parametrize(
    "new",
    ["set: {mamba-scheduler-strategy", "set: {attn-dp-size", "set: {'{flag}'", "set: {'<flag>'"],
)
def test_a_flag_of_some_release_or_one_to_be_filled_in_is_fine(tmp_path: Path, new: str) -> None:
    assert faults(names_known_flags, tmp_path, "set: {tp-size", new) == []


@pytest.mark.parametrize("regex", ["a(b", r"(a)\1", "(?<=a)b"])
@pytest.mark.parametrize("key", ["all", "anywhere", "without"])
def test_a_regex_that_one_engine_refuses_is_reported(tmp_path: Path, key: str, regex: str) -> None:
    pattern = f"all: ['^x$']\n    {key}: ['{regex}']" if key != "all" else f"all: ['{regex}']"
    [found] = faults(compiles, tmp_path, "all: ['^ValueError: alpha$']", pattern)
    assert found.startswith(f"`{regex}` does not compile: ")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("flag.tp-size: '8', host.sm: 120", "flag.tp-size: '8', host.sm: 90", "the rule does not fire"),
        ("flag.tp-size: '8', host.sm: 120", "flag.tp-size: '8'", "the rule does not fire"),
        ("flag.tp-size: '2', host.sm", "flag.tp-size: '4', host.sm", "the rule fires"),
    ],
)
def test_a_case_that_turns_out_otherwise_is_reported_with_its_line(
    tmp_path: Path, old: str, new: str, fault: str
) -> None:
    line = 10 if fault.endswith("not fire") else 11
    assert faults(behaves_as_stated, tmp_path, old, new) == [f"causes/alpha/cause.yaml:{line}:5: {fault}"]


def test_a_warning_may_only_be_cleared_by_probes_that_exist(tmp_path: Path) -> None:
    text = SIGN.format(role="ledger") + "cleared-by: [needle, nedle]\n"
    assert list(names_known_probes(entry(tmp_path, text, "signs/x"))) == [
        "`cleared-by` names `nedle`, which is not a probe"
    ]


def test_a_log_that_is_not_recognised_as_its_name_says_is_reported(tmp_path: Path) -> None:
    item = entry(tmp_path, match_wrong=MISS, miss_wrong=MATCH)
    assert log_faults(tmp_path, item) == [
        "match-wrong.log must be diagnosed as alpha; it is diagnosed as nothing",
        "miss-wrong.log must not be diagnosed as alpha; it is diagnosed as alpha",
    ]


@pytest.mark.parametrize("role", ["symptom", "benign", "ledger"])
def test_a_sign_is_looked_for_by_its_role(tmp_path: Path, role: str) -> None:
    logs = {"match_one": AT + "odd\n", "miss_one": AT + "even\n", "match_wrong": AT + "even\n"}
    item = entry(tmp_path, SIGN.format(role=role), "signs/x", **logs)
    (tmp_path / "causes").mkdir()
    assert log_faults(tmp_path, item) == ["match-wrong.log must be diagnosed as x; it is diagnosed as nothing"]


def test_facts_beside_a_log_count_and_facts_alone_are_a_case(tmp_path: Path) -> None:
    text = GOOD.replace(
        "'^ValueError: alpha$']", "'^ValueError: alpha$']\n    when: {host.sm: 90}\n  - when: {observed.kind: hang}"
    )
    item = entry(
        tmp_path, text, match_one=MATCH, match_one_facts="gpu: {sm: 90}\n", miss_one=MATCH,
        match_seen_facts="observed: {kind: hang}\n", match_wrong_facts="observed: {kind: slow}\n",
    )  # fmt: skip
    assert log_faults(tmp_path, item) == ["match-wrong.facts.yaml is recognised as nothing"]


def test_each_fault_names_its_entry(tmp_path: Path) -> None:
    item = entry(tmp_path, GOOD.replace("why: Because.", "why: ''"), miss_one=MISS)
    (tmp_path / "phases").symlink_to(KNOWLEDGE / "phases")
    found = lint([item], signature_build.build(tmp_path))
    assert {"alpha: `why` is missing", "alpha: `during` needs a match-*.log"} <= set(found)
    assert all(fault.startswith("alpha: ") for fault in found)


def test_a_folder_without_its_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "causes" / "misnamed").mkdir(parents=True)
    (tmp_path / "causes" / "misnamed" / "case.yaml").write_text("title: x\n")
    (tmp_path / "signs").mkdir()
    assert list(folders_without_an_entry(tmp_path)) == ["causes/misnamed: cause.yaml is missing"]
    assert list(folders_without_an_entry()) == []
