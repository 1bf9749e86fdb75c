"""The span of releases of flags and variables; the hand-written table of renames against the schemas."""

from __future__ import annotations

import pytest

from checks.engine.flag_history import (
    RENAMES,
    Successor,
    canonical_elsewhere,
    flag_span,
    releases,
    spellings_of,
    successor,
    successors,
    variable_span,
)
from checks.engine.flag_schema import available, load


@pytest.mark.parametrize("entry", successors().values(), ids=successors())
def test_the_table_of_renames_agrees_with_the_schemas(entry: Successor) -> None:
    span = flag_span(entry.old)
    assert span is not None
    assert entry.removed == span.gone
    warned = [v for v in available() if _deprecated(v, entry.old)]
    assert entry.deprecated == (warned[0] if warned else None)
    for target in [entry.new, *entry.set]:
        assert target is None or load(entry.since or span.gone or "").spell(target)


def test_every_option_that_warned_before_it_went_is_in_the_table() -> None:
    newest = load()
    gone = {n for v in available() for n, f in load(v).by_name.items() if f.deprecated and n not in newest.by_name}
    assert gone <= set(successors())


def test_an_entry_of_the_table_keeps_its_values_as_texts() -> None:
    renamed, replaced = successor("mamba-scheduler-strategy"), successor("enable-dp-attention")
    assert renamed is not None and (renamed.kind, renamed.new, renamed.removed) == (
        "renamed", "mamba-radix-cache-strategy", "0.5.20",
    )  # fmt: skip
    assert replaced is not None and (replaced.kind, replaced.new) == ("replaced", None)
    assert (dict(replaced.set), replaced.unset) == ({"attn-dp-size": "<dp-size>"}, ("dp-size",))
    variable = successor("enable-beta-spec")
    assert variable is not None and dict(variable.env) == {"SGLANG_ENABLE_SPEC_V2": "1"}
    assert {entry.kind for entry in successors().values()} == {"renamed", "replaced", "dropped"}
    assert successor("tp-size") is None


def test_the_table_names_each_old_option_once() -> None:
    olds = [line.split("old: ")[1].split(",")[0].strip() for line in RENAMES.read_text().split("\n") if "old: " in line]
    assert sorted(olds) == sorted(successors())


@pytest.mark.parametrize("name", ["torchao-config", "enable-beta-spec", "attn-dp-size", "model-path"])
def test_the_span_of_a_flag_agrees_with_the_schemas(name: str) -> None:
    having = [v for v in available() if name in load(v).by_name]
    span = flag_span(name)
    assert span is not None
    assert (span.first, span.last) == (having[0], having[-1])
    after = available()[available().index(having[-1]) + 1 :]
    assert span.gone == (after[0] if after else None)


def test_a_variable_has_a_span() -> None:
    span = variable_span("SGLANG_ENABLE_SPEC_V2")
    assert span is not None
    assert load(span.first).environment.knows("SGLANG_ENABLE_SPEC_V2")
    assert not load(span.gone or "").environment.knows("SGLANG_ENABLE_SPEC_V2")


@pytest.mark.parametrize("name", ["no-such-flag", "", "--model-path"])
def test_a_name_that_no_release_has_has_no_span(name: str) -> None:
    assert flag_span(name) is None and variable_span(name) is None and canonical_elsewhere(name) is None


@pytest.mark.parametrize(
    ("name", "newest"),
    [
        ("mamba-scheduler-strategy", "mamba-radix-cache-strategy"),
        ("mamba-radix-cache-strategy", "mamba-radix-cache-strategy"),
        ("tensor-parallel-size", "tp-size"),
        ("enable-beta-spec", "enable-beta-spec"),
    ],
)
def test_a_name_of_any_release_has_a_newest_one(name: str, newest: str) -> None:
    assert canonical_elsewhere(name) == newest


def test_spellings_are_listed_newest_first() -> None:
    assert spellings_of("mamba-radix-cache-strategy") == ("mamba-radix-cache-strategy", "mamba-scheduler-strategy")
    assert spellings_of("no-such-flag") == ("no-such-flag",)


def test_releases_are_listed_oldest_first() -> None:
    assert releases()[0] == "0.4.10"
    assert releases().index("0.5.9") < releases().index("0.5.10") < releases().index("0.5.10.post1")


def _deprecated(version: str, name: str) -> bool:
    flag = load(version).by_name.get(name)
    return flag is not None and flag.deprecated
