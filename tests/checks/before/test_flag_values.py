"""One value against a declaration made by hand: how many words, which type, which choices, and what is advised."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from checks.before.flag_values import check_value
from checks.engine.flag_schema import Flag, load
from checks.vocabulary import Finding, FlagValue, Severity

SCHEMA = load("0.5.9")


def check(value: FlagValue, *, name: str = "x", exact: bool = True, **declared: Any) -> list[Finding]:
    flag = Flag(spelled=(f"--{name}",), dest="x", source="x.py:1", **declared)
    return list(check_value(name, value, flag, replace(SCHEMA, exact=exact)))


@pytest.mark.parametrize(
    ("nargs", "value", "complaint"),
    [
        (0, True, ""),
        (0, "yes", "is a switch and takes no value, but has `yes`"),
        (0, ["a", "b"], "is a switch and takes no value, but has `a b`"),
        (None, "a", ""),
        (None, ["a"], ""),
        (None, True, "takes exactly one value, but has none"),
        (None, [], "takes exactly one value, but has none"),
        (None, ["a", "b"], "takes exactly one value, but has `a b`"),
        ("+", "a", ""),
        ("+", ["a", "b"], ""),
        ("+", True, "takes at least one value"),
        ("+", [], "takes at least one value"),
        ("?", True, ""),
        ("?", "a", ""),
        ("?", ["a", "b"], "takes at most one value, but has `a b`"),
        ("*", True, ""),
        ("*", ["a", "b", "c"], ""),
        (2, ["a", "b"], ""),
        (2, "a", "takes 2 values, but has `a`"),
    ],
)
def test_a_flag_takes_so_many_words(nargs: str | int | None, value: FlagValue, complaint: str) -> None:
    found = check(value, nargs=nargs)
    assert [finding.message for finding in found] == ([f"--x {complaint}"] if complaint else [])


@pytest.mark.parametrize(
    ("kind", "good", "bad", "wanted"),
    [
        ("int", ["8", "-1", " 7 "], ["8.0", "16k", "", "eight"], "a whole number"),
        ("float", ["8", "0.5", "1e-3", "inf"], ["90%", "half", ""], "a number"),
        ("loads", ["{}", "[1]", '"a"', "1"], ["{a: 1}", "", "'a'"], "JSON"),
        ("json_list_type", ["[1]"], ["[1"], "a JSON list"),
        (
            "human_readable_int",
            ["8192", "16k", "1.5M", "1Ki", "-1", "2T"],
            ["16 k", "16K", "1.5", "1.5Mi", "k"],
            "a whole number such as 8192, 16k or 1Mi",
        ),
        ("str", ["anything", ""], [], ""),
        (None, ["anything"], [], ""),
        ("function_of_the_engine", ["anything"], [], ""),
    ],
)
def test_a_word_is_read_by_its_type(kind: str | None, good: list[str], bad: list[str], wanted: str) -> None:
    assert [check(word, type=kind) for word in good] == [[]] * len(good)
    for word in bad:
        [finding] = check(word, type=kind)
        assert (finding.message, finding.severity) == (f"--x takes {wanted}, not `{word}`", Severity.ERROR)


def test_each_word_of_several_is_judged_and_only_the_number_of_words_where_that_is_wrong() -> None:
    assert len(check(["1", "two", "three"], nargs="+", type="int")) == 2
    [finding] = check(["one", "two"], type="int")
    assert "exactly one value" in finding.message


def test_a_flag_without_a_known_successor_is_corrected_by_hand() -> None:
    [finding] = check("eight", type="int")
    assert (finding.id, finding.subject) == ("flag-value-not-a-choice", "flag.x")
    [remedy] = finding.remedies
    assert (dict(remedy.set), remedy.concrete) == ({"x": "<value>"}, False)


@pytest.mark.parametrize(("choices", "value"), [(("a", "b"), "a"), ((1, 2), "2"), ((None, "a"), "a"), (None, "z")])
def test_a_choice_is_taken_as_it_is_typed(choices: tuple[Any, ...] | None, value: str) -> None:
    assert check(value, choices=choices) == []


@pytest.mark.parametrize(
    ("word", "offered"),
    [
        ("flash_infer", ["flashinfer"]),
        ("gpt_oss", ["gpt-oss"]),
        ("GPT-OSS", ["gpt-oss"]),
        ("zzz", []),
    ],
)
def test_another_word_is_refused_with_those_that_are_near(word: str, offered: list[str]) -> None:
    [finding] = check(word, choices=("flashinfer", "gpt-oss", "gpt-os", None))
    assert finding.message == f"--x {word}: SGLang 0.5.9 accepts only flashinfer, gpt-oss, gpt-os"
    assert [remedy.set["x"] for remedy in finding.remedies if remedy.concrete] == offered
    assert (finding.remedies[-1].text, finding.remedies[-1].concrete) == (
        "Choose one of: flashinfer, gpt-oss, gpt-os.", False,
    )  # fmt: skip


def test_a_release_that_is_not_known_exactly_may_have_further_choices() -> None:
    assert [check("z", choices=("a",), exact=exact)[0].severity for exact in (True, False)] == [
        Severity.ERROR, Severity.WARNING,
    ]  # fmt: skip
    assert check("z", type="int", exact=False)[0].severity is Severity.ERROR


def test_the_remedy_names_the_flag_as_the_newest_release_does() -> None:
    [finding] = check("z", name="mamba-scheduler-strategy", choices=("auto",))
    assert {name for remedy in finding.remedies for name in remedy.set} == {"mamba-radix-cache-strategy"}
    assert finding.subject == "flag.mamba-scheduler-strategy"
