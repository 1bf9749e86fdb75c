"""Fragments: how they are expanded, which files are rejected, and which braces are not fragments."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import KNOWLEDGE
from checks.catalog.entries import load
from checks.catalog.fragments import Fragment, expand, fragments, names_in
from checks.catalog.yaml_reader import YamlError
from checks.lint.fragment_faults import fragments_are_shared

KNOWN = {"oom": Fragment(pattern="A|B", meaning="m"), "other-one": Fragment(pattern="C", meaning="m")}


def entry(root: Path, name: str, *regexes: str) -> Path:
    folder = root / "causes" / name
    folder.mkdir(parents=True)
    listed = ", ".join(f"'{regex}'" for regex in regexes)
    (folder / "cause.yaml").write_text(f"title: {name}\nwhy: w\nduring:\n  - all: [{listed}]\n")
    return folder


@pytest.mark.parametrize(
    ("regex", "expanded"),
    [
        ("{oom}", "(?:A|B)"),
        ("x {oom}|y", "x (?:A|B)|y"),
        ("{oom}{other-one}", "(?:A|B)(?:C)"),
        (r"\d{2}\w{1,3}x{4,}", r"\d{2}\w{1,3}x{4,}"),
        (r"a dict \{oom\} or \{oom}", r"a dict \{oom\} or \{oom}"),
        ("plain", "plain"),
    ],
)
def test_a_name_is_replaced_as_a_group_and_nothing_else(regex: str, expanded: str) -> None:
    assert expand(regex, KNOWN, "here") == expanded


def test_an_unknown_name_is_rejected_with_its_position(tmp_path: Path) -> None:
    (tmp_path / "fragments.yaml").write_text("out-of-memory: {pattern: A, meaning: m}\n")
    folder = entry(tmp_path, "one", "fine", "{out-of-memry}")
    with pytest.raises(
        YamlError, match=r"causes/one/cause\.yaml:4:\d+: unknown fragment `\{out-of-memry\}`"
    ) as refused:
        load(folder)
    assert "did you mean `out-of-memory`?" in str(refused.value)


def test_an_entry_is_loaded_with_the_fragments_of_its_own_knowledge(tmp_path: Path) -> None:
    (tmp_path / "fragments.yaml").write_text("oom: {pattern: 'A|B', meaning: m}\n")
    [pattern] = load(entry(tmp_path, "one", "{oom} x", "{oom}")).during
    assert pattern.all == ("(?:A|B) x", "(?:A|B)")
    assert pattern.fragments == ("oom", "oom")


def test_a_draft_is_loaded_with_the_fragments_that_ship(tmp_path: Path) -> None:
    [pattern] = load(entry(tmp_path, "draft", "{gpu-out-of-memory}")).during
    assert pattern.all == (f"(?:{fragments()['gpu-out-of-memory'].pattern})",)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("oom: {pattern: A}\n", "`meaning` is missing"),
        ("oom: {meaning: A}\n", "`pattern` is missing"),
        ("Oom: {pattern: A, meaning: m}\n", "lower-case words"),
        ("a: {pattern: 'x{b}', meaning: m}\nb: {pattern: y, meaning: m}\n", "cannot contain another fragment"),
        ("oom: {pattern: A, meaning: m, note: n}\n", "unknown key `note`"),
    ],
)
def test_a_malformed_fragment_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "fragments.yaml").write_text(text)
    with pytest.raises(YamlError, match=fault):
        fragments(tmp_path)


def test_a_fragment_that_is_not_shared_is_reported(tmp_path: Path) -> None:
    (tmp_path / "fragments.yaml").write_text("".join(f"{n}: {{pattern: {n}, meaning: m}}\n" for n in "abc"))
    items = [load(entry(tmp_path, "one", "{a}", "{b}")), load(entry(tmp_path, "two", "x|{a}"))]
    faults = list(fragments_are_shared(items, fragments(tmp_path)))
    assert [fault.partition(";")[0] for fault in faults] == [
        "fragments.yaml: `b` is used only once",
        "fragments.yaml: `c` is not used",
    ]


def test_no_entry_repeats_the_regex_of_a_fragment() -> None:
    """Where a wording has a name, the name is used."""
    long = {name: item.pattern for name, item in fragments().items() if "|" in item.pattern}
    repeated = [
        (path.parent.name, name)
        for path in sorted(KNOWLEDGE.glob("*/*/*.yaml"))
        for name, pattern in long.items()
        if pattern in path.read_text()
    ]
    assert repeated == []


def test_names_are_counted_as_often_as_they_occur() -> None:
    assert names_in("{oom}|{other-one}.*{oom}") == ("oom", "other-one", "oom")
