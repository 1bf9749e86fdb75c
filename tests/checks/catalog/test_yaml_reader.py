"""The YAML reader: positions, scalars that are text, errors of every accessor, and `dump`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks.catalog.yaml_reader import MAX_BYTES, Node, YamlError, did_you_mean, dump, parse, read

DOCUMENT = """\
# a comment
name: smol
flags:
  tp-size: 8
  cuda-graph-bs: [1, two,
    3]
env:
  - 'A'
  - {B: 1}
"""


def refused(text: str | bytes) -> YamlError:
    with pytest.raises(YamlError) as error:
        parse(text, "p.yaml")
    return error.value


# --- positions


def test_every_value_and_key_knows_its_line_and_column() -> None:
    root = parse(DOCUMENT, "p.yaml")
    flags, env = root.need("flags"), root.need("env")
    assert root.where == "p.yaml:2:1"
    assert root.key_where("flags") == "p.yaml:3:1"
    assert flags.where == "p.yaml:4:3"
    assert flags.need("tp-size").where == "p.yaml:4:12"
    assert [item.where for item in flags.need("cuda-graph-bs").sequence()] == [
        "p.yaml:5:19",
        "p.yaml:5:22",
        "p.yaml:6:5",
    ]
    assert env.sequence()[1].need("B").where == "p.yaml:9:9"
    assert env.sequence()[1].key_where("B") == "p.yaml:9:6"
    assert root.key_where("nowhere") == root.where


def test_an_error_contains_file_line_column_and_hint() -> None:
    error = parse(DOCUMENT, "p.yaml").need("flags").fail("too many", "take one away")
    assert str(error) == "p.yaml:4:3: too many\n  hint: take one away"
    assert (error.message, error.where, error.hint) == ("too many", "p.yaml:4:3", "take one away")
    assert str(YamlError("bad", "f")) == "f: bad"


def test_a_file_is_named_as_the_caller_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes("\ufeffname: é\n".encode())
    assert read(path).need("name").where == f"{path}:1:7"
    assert read(path, "causes/x").where == "causes/x:1:1"
    assert read(path).plain() == {"name": "é"}


def test_a_file_that_cannot_be_opened_is_a_complaint_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(YamlError, match=r"gone.yaml: No such file"):
        read(tmp_path / "gone.yaml")
    with pytest.raises(YamlError, match=r"shown: Is a directory"):
        read(tmp_path, "shown")


# --- scalars


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("8", 8),
        ("-8", -8),
        ("0777", 777),
        ("0.85", 0.85),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("TRUE", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("NO", "NO"),
        ("yes", "yes"),
        ("on", "on"),
        ("tRue", "tRue"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("2026-11-29", "2026-11-29"),
        ("0.5.10", "0.5.10"),
        ("16k", "16k"),
        ("'8'", "8"),
        ('"true"', "true"),
        ("!!int '8'", "8"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_plain_words_are_read_as_yaml_1_2_has_them(typed: str, value: object) -> None:
    plain = parse(f"a: {typed}", "p").plain()["a"]
    assert (plain, type(plain)) == (value, type(value))


def test_a_block_of_text_is_text_even_where_it_looks_like_a_number() -> None:
    assert parse("a: |\n  8\nb: >\n  true\n", "p").plain() == {"a": "8\n", "b": "true\n"}


@pytest.mark.parametrize("text", ["", "# only a comment\n", b"\xef\xbb\xbf"])
def test_an_empty_document_is_an_empty_mapping(text: str | bytes) -> None:
    assert parse(text, "p").mapping() == {}
    assert parse(text, "p").where == "p:1:1"


# --- what is refused


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\nb: 2\na: 3\n", "p.yaml:3:1: duplicate key `a` (first on line 1)"),
        ("x:\n  'a': 1\n  a: 2\n", "p.yaml:3:3: duplicate key `a` (first on line 2)"),
        ("a: &x {k: 1}\nb:\n  <<: *x\n", "p.yaml:3:3: merge keys (`<<`) are not supported\n  hint: use `extends`"),
        ("? [a]\n: 1\n", "p.yaml:1:3: a key must be plain text"),
        ("a: &x [*x]\n", "p.yaml:1:4: this alias contains itself"),
        ("a: [1, 2\nb: 3\n", "p.yaml:2:"),
        ("a:\n\t- 1\n", "p.yaml:2:1: found character"),
        ("a: *nobody\n", "p.yaml:1:4: found undefined alias"),
        ("a: 1\n---\nb: 2\n", "p.yaml:2:1: but found another document"),
        ("a: " + "[" * 41 + "]" * 41, "p.yaml:1:43: nested more than 40 levels deep"),
        ("a: " + "[" * 5000, "p.yaml:"),
        (b"a: \xff\n", "p.yaml: not UTF-8 text (byte 3)"),
        ("a: \x00\n", "p.yaml: cannot read this as YAML: "),
        ("a" * (MAX_BYTES + 1), "p.yaml: the file is larger than 4 MiB, so it is not a profile"),
    ],
)
def test_a_document_that_cannot_be_meant_is_refused_with_its_place(text: str | bytes, complaint: str) -> None:
    assert str(refused(text)).startswith(complaint)


def test_the_same_key_in_two_mappings_and_an_alias_used_twice_are_fine() -> None:
    assert parse("a: &x {k: 1}\nb: {k: 2}\nc: [*x, *x]\n", "p").plain() == {
        "a": {"k": 1}, "b": {"k": 2}, "c": [{"k": 1}, {"k": 1}],
    }  # fmt: skip


# --- accessors

KINDS = {
    "nothing": "~", "true/false": "true", "a number": "8", "text": "word", "a list": "[1]", "a mapping": "{k: 1}",
}  # fmt: skip
ACCESSORS: dict[str, tuple[Callable[[Node], object], str, dict[str, object]]] = {
    "text": (Node.text, "expected text", {"text": "word", "a number": "8"}),
    "flag": (Node.flag, "expected true or false", {"true/false": True}),
    "number": (Node.number, "expected a number", {"a number": 8.0}),
    "sequence": (lambda node: [item.value for item in node.sequence()], "expected a list", {"a list": [1]}),
    "mapping": (lambda node: sorted(node.mapping()), "expected a mapping", {"a mapping": ["k"]}),
    "get": (lambda node: node.get("z"), "expected a mapping", {"a mapping": None}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("accessor", ACCESSORS)
def test_an_accessor_accepts_its_own_type_and_names_the_type_it_found(accessor: str, kind: str) -> None:
    take, complaint, results = ACCESSORS[accessor]
    node = parse(f"a: {KINDS[kind]}", "p").value["a"]
    assert node.kind == kind
    if kind in results:
        assert take(node) == results[kind]
        return
    with pytest.raises(YamlError) as error:
        take(node)
    assert str(error.value).startswith(f"p:1:4: {complaint}, found {kind}")


def test_a_number_taken_as_text_stays_as_it_was_typed() -> None:
    root = parse("a: 0.50\nb: 007\nc: 1e3\n", "p")
    assert [root.need(key).text() for key in "abc"] == ["0.50", "007", "1e3"]


def test_a_wrong_switch_is_quoted() -> None:
    with pytest.raises(YamlError, match="you wrote `yes`"):
        parse("a: yes", "p").need("a").flag()


def test_a_missing_or_null_child_is_none_and_is_missed_when_it_is_needed() -> None:
    root = parse("a: 1\nb: ~\n", "p")
    assert root.get("a") is not None and root.get("b") is None and root.get("c") is None
    assert root.need("a").value == 1
    for key in "bc":
        with pytest.raises(YamlError, match=f"p:1:1: `{key}` is missing"):
            root.need(key)


@pytest.mark.parametrize("document", ["{}", "{key: null}"])
def test_a_child_that_is_absent_or_null_is_empty_in_every_form(document: str) -> None:
    node = parse(document, "x.yaml")
    assert (node.text_of("key"), node.items("key"), node.texts("key"), node.children("key")) == ("", [], (), {})
    assert node.engine_range("key").text == ""


def test_a_child_is_handed_out_in_the_form_asked_for() -> None:
    node = parse("{text: ' a ', list: [b, 1], mapping: {c: d}, range: ' >=0.5.10 '}", "x.yaml")
    assert node.text_of("text") == "a"
    assert node.texts("list") == tuple(item.text() for item in node.items("list")) == ("b", "1")
    assert {key: child.text() for key, child in node.children("mapping").items()} == {"c": "d"}
    assert node.engine_range("range").contains("0.5.10") and not node.engine_range("range").contains("0.5.9")


@pytest.mark.parametrize("text", ["newest", ">=0.5.10,<x", "0.5.10"])
def test_a_malformed_range_of_releases_is_refused_where_it_stands(text: str) -> None:
    with pytest.raises(YamlError, match=r"^x\.yaml:1:9: `.*` is not a version range\n  hint: write e\.g\."):
        parse(f"engine: '{text}'", "x.yaml").engine_range("engine")


def test_a_word_that_is_not_a_choice_is_refused_with_all_choices() -> None:
    assert parse("b", "x.yaml").choice(("a", "b")) == "b"
    with pytest.raises(YamlError, match="`c` is not one of a, b"):
        parse("c", "x.yaml").choice(("a", "b"))


def test_an_unknown_key_is_rejected_at_its_position_with_a_similar_name() -> None:
    root = parse("title: t\nremedeis: []\n", "p")
    assert set(root.mapping(["title", "remedeis"])) == {"title", "remedeis"}
    with pytest.raises(YamlError) as error:
        root.mapping(iter(["title", "remedies"]), "field")
    assert str(error.value) == "p:2:1: unknown field `remedeis`\n  hint: did you mean `remedies`?"


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("tilte", ["title", "why"], "did you mean `title`?"),
        ("case", ["cases", "cause", "why"], "did you mean `cause` or `cases`?"),
        ("zzz", ["why", "title"], "known: title, why"),
        ("zzz", [f"a{n}" for n in range(20)], "known: a0, "),
        ("zzz", [f"a{n}" for n in range(21)], ""),
    ],
)
def test_a_near_name_is_suggested_else_a_short_list(word: str, known: list[str], hint: str) -> None:
    assert did_you_mean(word, iter(known)).startswith(hint)
    assert bool(did_you_mean(word, known)) is bool(hint)


# --- writing

# PyYAML takes Unicode's own line breaks for blanks
ORDINARY = st.characters(exclude_characters="\x85\u2028\u2029", codec="utf-8")
TEXTS = st.text(ORDINARY, max_size=12) | st.from_regex(r"[-+.0-9eE_:nux~]{1,8}", fullmatch=True) | st.sampled_from(
    ["NO", "true", "Null", "~", "1e3", "09", "1.5e3", "=", "- a", "a: b", "a #b", "'", '"', "\n", " x "]
)  # fmt: skip
DATA: st.SearchStrategy[Any] = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS.filter(lambda key: key != "<<"), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=60)
@given(DATA)
def test_what_is_written_is_read_back_the_same(data: Any) -> None:
    again = parse(dump({"a": data}), "p").plain()["a"]
    assert (again, repr(again)) == (data, repr(data))


def test_what_is_written_keeps_its_order() -> None:
    assert dump({"b": 1, "a": ["é", "1e3"]}) == "b: 1\na:\n- é\n- '1e3'\n"
