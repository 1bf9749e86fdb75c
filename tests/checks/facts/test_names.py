"""The registry of facts, held to what the project really makes."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import pytest

from checks.catalog.conditions import CLOSED
from checks.catalog.yaml_reader import did_you_mean
from checks.engine.flag_history import canonical_elsewhere
from checks.facts.names import GIVEN, STATED, Fact, flag_choices, flag_types, known_names, lookup, namespaces
from checks.vocabulary import EngineRange
from tests.support.known_facts import made, sources
from tests.support.paths import ROOT

RECORDS = [fact for space in namespaces().values() for fact in space.facts.values()]
DERIVED = "checks/facts/derived/"


def registered(name: str) -> bool:
    if not name.startswith("flag."):
        return lookup(name) is not None
    # a log also shows arguments that are no option of any release: they keep the name they have there
    option = name.removeprefix("flag.")
    return canonical_elsewhere(option) in (option, None)


def test_every_fact_that_is_made_is_registered() -> None:
    unregistered = sorted({name for _, name, _ in made() if not registered(name)})
    advice = [f"{name}: {did_you_mean(name, known_names())}" for name in unregistered]
    assert advice == [], "add a record to checks/knowledge/facts; flags go by their newest name"


def test_every_fact_that_is_made_has_the_registered_type() -> None:
    wrong = [
        (where, name, value)
        for where, name, value in made()
        if not name.startswith("flag.") and (fact := lookup(name)) and not fact.accepts(value)
    ]
    assert wrong == []


def test_every_derived_fact_is_made_by_something_that_ships() -> None:
    seen = {name for _, name, value in made() if value is not None}
    derived = {fact.name for fact in RECORDS if any(module.startswith(DERIVED) for module in fact.measured_by)}
    missing = sorted(derived - seen)
    assert missing == [], "no case, log or host that ships makes them known: add a case to a cause that uses them"


@pytest.mark.parametrize("fact", RECORDS, ids=lambda fact: fact.name)
def test_the_module_that_measures_a_fact_mentions_it(fact: Fact) -> None:
    leaf = fact.name.partition(".")[2]
    for module in fact.measured_by:
        if module != GIVEN:
            assert mentions(ROOT / module, leaf, fact.name), (
                f"{module} has no text `{leaf}`: name the module that does in `measured-by`"
            )


def mentions(path: Path, leaf: str, name: str) -> bool:
    """As a word of a text in it, or as a text that is put together of at least three fixed characters."""
    short = {"host.gpu_name": "name", "host.gpu_count": "count"}.get(name, leaf)
    words = {leaf, short, name}
    for text in sources(path):
        if any(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) for word in words):
            return True
        fixed = text.replace("*", "").partition(".")[2] or text.replace("*", "")
        if "*" in text and len(fixed.strip("._")) >= 3 and any(fnmatch.fnmatchcase(word, text) for word in words):
            return True
    return False


def test_a_module_that_does_not_speak_of_a_fact_is_noticed() -> None:
    assert not mentions(ROOT / "checks/facts/derived/parallel.py", "sm12x", "host.sm12x")
    assert mentions(ROOT / "checks/facts/derived/speculation.py", "draft_mla_differs", "launch.draft_mla_differs")


def test_what_derivations_read_is_registered() -> None:
    read = {
        text
        for path in (ROOT / DERIVED).glob("*.py")
        for text in sources(path)
        if re.fullmatch(rf"({'|'.join(namespaces())})\.[A-Za-z][\w.-]*", text) and text[-1] not in ".-_"
    }
    assert len(read) > 200
    assert sorted(name for name in read if not registered(name) or lookup(name) is None) == []


def test_closed_namespaces_are_those_of_the_condition_language() -> None:
    assert {f"{space.name}." for space in namespaces().values() if space.closed} == set(CLOSED)


def test_only_what_a_launch_states_may_be_given_alone() -> None:
    named = {fact.name for fact in RECORDS if fact.measured_by == (GIVEN,)}
    assert {name for name in named if name.partition(".")[0] not in STATED} == {
        "host.topology", "package.sgl-kernel-arch-list",
    }  # fmt: skip


@pytest.mark.parametrize("fact", RECORDS, ids=lambda fact: fact.name)
def test_a_record_reads_as_a_sentence(fact: Fact) -> None:
    assert fact.meaning[0].isupper() or (fact.meaning.startswith(("/", "--")) and fact.meaning.endswith((".", "..")))
    assert not fact.when.endswith(".") and fact.since == "0.1.0"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("flag.tp-size", "number"),
        ("flag.disable-radix-cache", "flag"),
        ("flag.attention-backend", "text"),
        ("env.SGLANG_ENABLE_SPEC_V2", "text"),
        ("env.NCCL_IB_DISABLE", "text"),
        ("package.xgrammar", "text"),
        ("package.kernel.state", "choice"),
        ("model.quant.ignore", "list"),
        ("captured.flag", "text"),
    ],
)
def test_open_names_are_proven(name: str, kind: str) -> None:
    fact = lookup(name)
    assert fact is not None and (fact.name, fact.type) == (name, kind)


@pytest.mark.parametrize(
    "name",
    [
        "host.sm12z", "flag.tp", "flag.mamba-scheduler-strategy", "flag.no-such-flag", "env.NCCL_IB_DISABEL",
        "package.flashinfer-pyton", "model.quant.ignor", "hots.sm", "model.quant.", "flag.", "host",
    ],
)  # fmt: skip
def test_a_wrong_name_is_not_proven(name: str) -> None:
    assert lookup(name) is None


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("number", [1, 1.5, "8", "16k", None], [True, "many", [1]]),
        ("text", ["x", 5, None], [True, ["x"]]),
        ("flag", [True, False, None], ["true", 1]),
        ("list", [["x"], ("x",), None], ["x"]),
        ("mapping", [{"a": 1}, None], [["a"]]),
        ("choice", ["on", None], ["off", True]),
    ],
)
def test_values_are_held_to_their_type(kind: str, good: list[object], bad: list[object]) -> None:
    fact = Fact(name="x.y", type=kind, meaning="", measured_by=(GIVEN,), when="", since="", choices=("on",))
    assert [value for value in good if not fact.accepts(value)] == []
    assert [value for value in bad if fact.accepts(value)] == []


def test_words_of_a_flag_are_those_of_the_releases_in_range() -> None:
    assert "marlin" not in flag_choices("moe-runner-backend", EngineRange("<0.5.3"))
    assert "marlin" in flag_choices("moe-runner-backend", EngineRange(""))
    assert flag_types("tp-size") == {"number"}


def test_known_names_hold_what_a_person_may_have_meant() -> None:
    assert {"host.sm12x", "flag.tp-size", "env.SGLANG_ENABLE_SPEC_V2", "model.quant.ignore"} <= set(known_names())
