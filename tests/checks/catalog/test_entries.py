"""Entries of the knowledge: how a valid entry loads, and how each invalid form is rejected with file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from checks import KNOWLEDGE
from checks.catalog.entries import entries, entry, exists, load
from checks.catalog.yaml_reader import YamlError
from checks.vocabulary import EngineRange, Remedy, Role, Severity

WHOLE = """\
title: Weights do not fit
why: |
  They are too large.
phase: weights
family: memory
engine: '>=0.5.4,<0.6'
before:
  - when: {host.sm: 90, flag.tp-size: {at_least: 2}}
    severity: error
    message: too large for {host.sm}
    engine: '<0.5.20'
    subject: flag.tp-size
during:
  - all: ['^ValueError', out of memory]
    anywhere: [begin]
    without: [benign]
    when: {observed.kind: hang}
    engine: '>=0.5.10'
    fails: request
  - anywhere: [alone]
remedies:
  - text: Use more GPUs.
    set: {tp-size: '<more>', cuda-graph-bs: [1, '2'], trust-remote-code: true, page-size: 0.50}
    unset: [dp-size]
    env: {A: 1}
    unset-env: [B]
    upgrade: {sglang: '>=0.5.8'}
    engine: '<0.6'
    when: {host.sm: 90}
references: [https://example.org/1]
cases:
  - {engine: 0.5.10, facts: {host.sm: 90, flag.tp-size: '2'}, fires: true}
"""
SIGN = "role: ledger\ntitle: Odd\nduring:\n  - all: [odd]\ncleared-by: [known-answer]\n"


def written(root: Path, text: str, place: str = "causes/x") -> Path:
    folder = root / place
    folder.mkdir(parents=True)
    (folder / ("sign.yaml" if place.startswith("signs") else "cause.yaml")).write_text(text)
    return folder


def test_a_cause_is_read_whole(tmp_path: Path) -> None:
    found = load(written(tmp_path, WHOLE))
    assert (found.id, found.role, found.title, found.why) == (
        "x",
        Role.CAUSE,
        "Weights do not fit",
        "They are too large.",
    )
    assert (found.phase, found.family, found.engine.text) == ("weights", "memory", ">=0.5.4,<0.6")
    assert found.references == ("https://example.org/1",)
    [rule] = found.before
    assert (rule.severity, rule.message, rule.subject) == (Severity.ERROR, "too large for {host.sm}", "flag.tp-size")
    assert rule.engine == EngineRange("<0.5.20")
    assert rule.when.holds({"host.sm": 90, "flag.tp-size": "2"}) and not rule.when.holds({"host.sm": 90})
    [case] = found.cases
    assert (case.facts, case.engine, case.fires) == ({"host.sm": 90, "flag.tp-size": "2"}, "0.5.10", True)
    assert case.where == "causes/x/cause.yaml:32:5"


def test_a_pattern_has_exactly_its_written_fields(tmp_path: Path) -> None:
    first, second = load(written(tmp_path, WHOLE)).during
    assert (first.all, first.anywhere, first.without) == (("^ValueError", "out of memory"), ("begin",), ("benign",))
    assert (first.fails, first.engine.text) == ("request", ">=0.5.10")
    assert first.when is not None and first.when.names == {"observed.kind"}
    assert (second.all, second.anywhere, second.without, second.fails) == ((), ("alone",), (), "")
    assert (second.when, second.engine.text) == (None, "")


def test_a_remedy_keeps_numbers_as_typed_and_knows_what_is_left_open(tmp_path: Path) -> None:
    [remedy] = load(written(tmp_path, WHOLE)).remedies
    assert remedy == Remedy(
        text="Use more GPUs.",
        set={"tp-size": "<more>", "cuda-graph-bs": ["1", "2"], "trust-remote-code": True, "page-size": "0.50"},
        unset=("dp-size",),
        env={"A": "1"},
        unset_env=("B",),
        upgrade={"sglang": ">=0.5.8"},
        engine=EngineRange("<0.6"),
        when={"host.sm": 90},
        concrete=False,
    )


@pytest.mark.parametrize(
    ("remedy", "concrete"),
    [
        ("{set: {a: '1'}, env: {B: x}}", True),
        ("{env: {B: <path>}}", False),
        ("{set: {a: [x, <y>]}}", False),
        ("{text: <}", True),
    ],
)
def test_a_placeholder_in_a_value_leaves_a_remedy_open(tmp_path: Path, remedy: str, concrete: bool) -> None:
    assert load(written(tmp_path, f"title: t\nremedies: [{remedy}]\n")).remedies[0].concrete is concrete


def test_a_sign_has_a_role_and_what_clears_it(tmp_path: Path) -> None:
    found = load(written(tmp_path, SIGN, "signs/odd"))
    assert (found.role, found.cleared_by, found.why) == (Role.LEDGER, ("known-answer",), "")
    assert (found.before, found.cases, found.engine.text) == ((), (), "")


def test_a_draft_lies_anywhere(tmp_path: Path) -> None:
    assert load(written(tmp_path, "title: t\n", "drafts/new")).role is Role.CAUSE


def test_causes_come_before_signs_each_in_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        written(tmp_path, "title: t\n", f"causes/{name}")
        written(tmp_path, SIGN, f"signs/{name}-sign")
    (tmp_path / "causes" / "notes.txt").write_text("no folder")
    assert [item.id for item in entries(tmp_path)] == ["a", "b", "a-sign", "b-sign"]


@pytest.mark.parametrize("slug", ["nobody", "", "..", "x/..", "../causes/x"])
def test_an_entry_is_found_only_by_its_own_id(tmp_path: Path, slug: str) -> None:
    written(tmp_path, "title: t\n")
    (tmp_path / "signs").mkdir()
    assert entry(slug, tmp_path) is None
    found = entry("x", tmp_path)
    assert found is not None and found.id == "x"


def test_every_entry_that_ships_has_a_name_of_its_own() -> None:
    shipped = entries()
    assert len({item.id for item in shipped}) == len(shipped) > 200
    assert {item.folder.parent.parent for item in shipped} == {KNOWLEDGE}


HEAD = "title: t\n"
RULE = "before:\n  - {{when: {}, severity: {}, message: m{}}}\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "1:1: `title` is missing"),
        ("- a\n", "1:1: expected a mapping, found a list"),
        ("title: [t]\n", "1:8: expected text, found a list"),
        (HEAD + "tilte: x\n", "2:1: unknown key `tilte`\n  hint: did you mean `title`?"),
        (HEAD + "role: symptom\n", "2:1: unknown key `role`"),
        (HEAD + "status: stable\n", "2:1: unknown key `status`"),
        (HEAD + "phase: loading\n", "2:8: `loading` is not one of install, import, args"),
        (HEAD + "engine: newest\n", "2:9: `newest` is not a version range"),
        (HEAD + "during: {all: [x]}\n", "2:9: expected a list, found a mapping"),
        (HEAD + "during:\n  - x\n", "3:5: expected a mapping, found text"),
        (HEAD + "during:\n  - {fails: request}\n", "3:5: a pattern needs `all`, `anywhere` or `when`"),
        (HEAD + "during:\n  - {all: []}\n", "3:5: a pattern needs `all`, `anywhere` or `when`"),
        (HEAD + "during:\n  - {without: [x]}\n", "3:5: a pattern needs `all`, `anywhere` or `when`"),
        (HEAD + "during:\n  - {all: x}\n", "3:11: expected a list, found text"),
        (HEAD + "during:\n  - {all: [[x]]}\n", "3:12: expected text, found a list"),
        (HEAD + "during:\n  - {all: [x], fails: all}\n", "3:23: `all` is not one of request, nothing"),
        (HEAD + "during:\n  - {all: [x], regex: y}\n", "3:16: unknown key `regex`"),
        (HEAD + "during:\n  - {when: {sm: 90}}\n", "3:12: `sm` is neither a fact (namespace.name) nor one of"),
        (HEAD + "during:\n  - {all: [x], engine: '0.5'}\n", "3:24: `0.5` is not a version range"),
        (
            HEAD + RULE.format("{flag.x: {above: 1}}", "error", ""),
            "3:12: unknown operator `above` under `flag.x`: use one of",
        ),
        (HEAD + RULE.format("{flag.x: 1}", "fatal", ""), "3:35: `fatal` is not one of error, warning, info"),
        (HEAD + RULE.format("{flag.x: 1}", "error", ", where: x"), "3:54: unknown key `where`"),
        (HEAD + "before:\n  - {severity: error, message: m}\n", "3:5: `when` is missing"),
        (HEAD + "before:\n  - {when: {flag.x: 1}, message: m}\n", "3:5: `severity` is missing"),
        (HEAD + "before:\n  - {when: {flag.x: 1}, severity: error}\n", "3:5: `message` is missing"),
        (HEAD + "remedies: [{do: x}]\n", "2:13: unknown key `do`"),
        (HEAD + "remedies: [{set: [tp-size]}]\n", "2:18: expected a mapping, found a list"),
        (HEAD + "remedies: [{set: {tp-size: }}]\n", "2:28: expected text, found nothing"),
        (HEAD + "remedies: [{env: {A: true}}]\n", "2:22: expected text, found true/false"),
        (HEAD + "remedies: [{when: {sm: 90}}]\n", "2:19: `sm` is neither a fact"),
        (HEAD + "cases:\n  - {engine: 0.5.10, facts: {a.b: 1}}\n", "3:5: `fires` is missing"),
        (HEAD + "cases:\n  - {engine: 0.5.10, fires: true}\n", "3:5: `facts` is missing"),
        (HEAD + "cases:\n  - {facts: {a.b: 1}, fires: true}\n", "3:5: `engine` is missing"),
        (
            HEAD + "cases:\n  - {engine: 0.5.10, facts: {a.b: 1}, fires: maybe}\n",
            "3:46: expected true or false, found text",
        ),
    ],
)
def test_a_faulty_cause_is_refused_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(YamlError, match="^" + re.escape(f"causes/x/cause.yaml:{complaint}")):
        load(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("title: t\n", "1:1: `role` is missing"),
        ("role: cause\ntitle: t\n", "1:7: `cause` is not one of symptom, benign, ledger"),
        (SIGN + "before: []\n", "6:1: unknown key `before`"),
        (SIGN + "cases: []\n", "6:1: unknown key `cases`"),
    ],
)
def test_a_faulty_sign_is_refused_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(YamlError, match="^" + re.escape(f"signs/x/sign.yaml:{complaint}")):
        load(written(tmp_path, text, "signs/x"))


def test_a_folder_without_its_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "causes" / "empty").mkdir(parents=True)
    with pytest.raises(YamlError, match=r"^causes/empty/cause.yaml: No such file"):
        load(tmp_path / "causes" / "empty")


@pytest.mark.parametrize(
    ("slug", "known"),
    [("draft-path-missing", True), ("stop-requested", True), ("", False), ("..", False), ("a/b", False)],
)
def test_an_entry_exists_under_its_id_only(slug: str, known: bool) -> None:
    assert exists(slug) is known
