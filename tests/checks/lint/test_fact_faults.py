"""Names and comparisons that can never hold are faults, with a hint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checks.catalog.conditions import Comparison
from checks.catalog.entries import entries, load
from checks.lint.entry_faults import lint
from checks.lint.fact_faults import comparison_faults, fact_faults
from checks.vocabulary import EngineRange

EVERY = EngineRange()


def faults(name: str, operator: str, operand: Any, engine: EngineRange = EVERY) -> str:
    return " | ".join(comparison_faults(Comparison(name, operator, operand), engine, frozenset({"limit"})))


@pytest.mark.parametrize(
    ("name", "operator", "operand", "fault"),
    [
        ("host.sm12z", "equals", True, "did you mean `host.sm12x`"),
        ("hots.sm", "equals", 90, "did you mean `host`"),
        ("flag.mamba-scheduler-strategy", "equals", "no_buffer", "is not a registered fact"),
        ("flag.no-such-flag", "present", True, "`flag.no-such-flag` is not a registered fact"),
        ("env.NCCL_IB_DISABEL", "equals", "1", "did you mean `env.NCCL_IB_DISABLE`"),
        ("package.flashinfer-pyton", "present", True, "did you mean"),
        ("host.topology", "matches", "NV", "no module measures it"),
        ("captured.limitt", "present", True, "no pattern of this entry has a group `limitt`; did you mean `limit`?"),
        ("model.family", "at_least", 2, "`at_least` compares numbers"),
        ("flag.attention-backend", "at_least", 2, "`at_least` compares numbers"),
        ("model.family", "equals", "qwen35", "is never `qwen35`: did you mean `qwen3.5`"),
        ("launch.spec_triple", "in", ["none", "ful"], "is never `ful`"),
        ("launch.spec_triple", "matches", "^full$", "matches none of the values"),
        ("host.sm", "matches", "^12", "`matches` searches text"),
        ("model.mla", "matches", "true", "`matches` searches text"),
        ("flag.disable-radix-cache", "matches", "true", "`matches` searches text"),
        ("model.mla", "equals", "yes", "is true or false and never `yes`"),
        ("host.sm", "equals", "hopper", "is a number and never `hopper`"),
        ("model.name", "equals", True, "use `present` to test for it"),
        ("flag.attention-backend", "equals", "flashinfr", "is never `flashinfr`: did you mean `flashinfer`"),
        ("model.rope_scaling", "equals", "yarn", "is a mapping"),
    ],
)
def test_what_can_never_hold_is_named(name: str, operator: str, operand: Any, fault: str) -> None:
    assert fault in faults(name, operator, operand)


@pytest.mark.parametrize(
    ("name", "operator", "operand"),
    [
        ("host.sm", "at_least", 90),
        ("host.sm", "in", [90, 100]),
        ("flag.tp-size", "at_least", 2),
        ("flag.tp-size", "equals", "2"),
        ("flag.disable-radix-cache", "equals", True),
        ("model.architectures", "equals", "LlamaForCausalLM"),
        ("model.architectures", "matches", "^Llama"),
        ("model.rope_scaling", "matches", "yarn"),
        ("package.torch", "equals", 2.9),
        ("captured.limit", "matches", "^1"),
    ],
)
def test_what_can_hold_is_not(name: str, operator: str, operand: Any) -> None:
    assert faults(name, operator, operand) == ""


def test_a_word_counts_only_in_releases_that_take_it() -> None:
    old = faults("flag.moe-runner-backend", "equals", "marlin", EngineRange("<0.5.3"))
    assert "is never `marlin`" in old and faults("flag.moe-runner-backend", "equals", "marlin") == ""


def test_what_a_pattern_captures_is_unknown_to_rules() -> None:
    found = comparison_faults(Comparison("captured.limit", "present", True), EVERY, frozenset({"limit"}), "rule 1")
    assert ["only remedies can use" in fault for fault in found] == [True]


CAUSE = """\
title: {title}
why: It fails.
phase: args
before:
  - when: {{host.sm: 90}}
    severity: error
    subject: {subject}
    message: '{message}'
during:
  - all: ['limit is (?P<limit>\\d+)']
remedies:
  - text: '{remedy}'
    require: {{sgl-kernel: '{require}'}}
cases:
  - {{engine: 0.5.10, fires: true, facts: {{host.sm: 90}}}}
  - {{engine: 0.5.10, fires: false, facts: {case}}}
"""


def faults_of(folder: Path, **changes: str) -> list[str]:
    usual = {
        "title": "t",
        "subject": "host.sm",
        "message": "SM{host.sm}",
        "remedy": "r {limit}",
        "require": "==1",
        "case": "{host.sm: 80}",
    }
    (folder / "cause.yaml").write_text(CAUSE.format(**{**usual, **changes}))
    return list(fact_faults(load(folder)))


def test_a_sound_entry_has_no_fault(tmp_path: Path) -> None:
    assert faults_of(tmp_path) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"subject": "host.sn"}, "`host.sn` is not a registered fact: did you mean `host.sm`"),
        ({"message": "SM{host.sn}"}, "(message of rule 1)"),
        ({"message": "limit {limit}"}, "use a fact here"),
        ({"title": "t {limits}"}, "no pattern of this entry has a group `limits` (title)"),
        ({"title": "t {host.sm}"}, "only rule messages and `require` can use facts (title)"),
        ({"remedy": "r {lmit}"}, "no pattern of this entry has a group `lmit` (remedy 1)"),
        ({"require": "=={package.kernel.pinn}"}, "did you mean `package.kernel.pin`"),
        ({"case": "{host.sn: 80}"}, "cause.yaml:16:5: `host.sn` is not a registered fact"),
        ({"case": "{host.sm: hopper}"}, "`host.sm` is a number, not 'hopper'"),
    ],
)
def test_each_place_that_names_facts_is_looked_at(tmp_path: Path, change: dict[str, str], fault: str) -> None:
    found = faults_of(tmp_path, **change)
    assert len(found) == 1 and fault in found[0]


def test_the_lint_of_entries_asks_for_these_faults(tmp_path: Path) -> None:
    faults_of(tmp_path, subject="host.sn")
    assert any("`host.sn` is not a registered fact" in fault for fault in lint([load(tmp_path)]))


def test_the_knowledge_that_ships_names_facts_soundly() -> None:
    assert [f"{item.id}: {fault}" for item in entries() for fault in fact_faults(item)] == []
