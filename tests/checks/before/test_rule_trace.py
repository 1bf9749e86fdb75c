"""Why a rule fires or does not."""

from __future__ import annotations

import pytest

from checks.before.rule_trace import trace
from checks.before.rules import first_holding
from checks.catalog.entries import Entry, entries, entry
from checks.facts import derived
from checks.facts.launch_evidence import Launch, build


def known(slug: str) -> Entry:
    found = entry(slug)
    assert found is not None
    return found


def sentence(slug: str, launch: Launch, **accepted: str) -> str:
    return trace(known(slug), build(launch)[0], accepted).sentence


TRTLLM = Launch(engine="0.5.10", flags={"moe-runner-backend": "flashinfer_trtllm"}, gpu={"name": "RTX PRO 6000"})


def test_a_rule_that_holds_says_so() -> None:
    found = trace(known("trtllm-moe-on-sm120"), build(TRTLLM)[0])
    assert (found.fired, found.rules[0].holds) == (1, True)
    assert found.sentence == "It fired: rule 1 holds."


def test_the_nearest_rule_gives_the_first_reason() -> None:
    other = Launch(engine="0.5.10", flags={"moe-runner-backend": "triton"}, gpu={"name": "RTX PRO 6000"})
    asked = "[flashinfer_trtllm, flashinfer_trtllm_routed]"
    assert sentence("trtllm-moe-on-sm120", other) == (
        f"It did not fire: in rule 1 `flag.moe-runner-backend` is triton, but the condition requires one of {asked}."
    )


def test_a_fact_that_nobody_measured_is_the_reason() -> None:
    unknown = Launch(engine="0.5.10", flags={"moe-runner-backend": "flashinfer_trtllm"})
    found = trace(known("trtllm-moe-on-sm120"), build(unknown)[0])
    assert found.rules[0].holds is None
    assert "`host.sm12x` is unknown" in found.sentence


def test_a_release_outside_the_range_is_the_reason() -> None:
    assert sentence("prefill-graph-with-fp4-speculation", Launch(engine="0.5.10")) == (
        "It did not fire: the cause applies to SGLang >=0.5.14, but the launch uses 0.5.10."
    )


def test_a_rule_outside_its_range_does_not_hold_whatever_its_condition_says() -> None:
    found = trace(known("glibc-too-old"), build(Launch(engine="0.5.9", host={"glibc": "2.31"}))[0])
    rule = next(rule for rule in found.rules if rule.engine == ">=0.5.11")
    assert (rule.applies, rule.condition.holds, rule.holds) == (False, True, False)


def test_a_finding_that_the_profile_accepts_still_fired() -> None:
    accepted = {"trtllm-moe-on-sm120": "a test of the runner"}
    found = trace(known("trtllm-moe-on-sm120"), build(TRTLLM)[0], accepted)
    assert found.sentence == "It fired: rule 1 holds, and the profile accepts it: a test of the runner."


def test_a_cause_that_only_shows_in_logs_says_where_to_ask() -> None:
    item = next(item for item in entries() if not item.before)
    assert f"`diagnose log FILE --trace {item.id}`" in trace(item, {}).sentence


@pytest.mark.parametrize("item", [item for item in entries() if item.cases], ids=lambda item: item.id)
def test_a_trace_fires_exactly_when_the_rules_do(item: Entry) -> None:
    for case in item.cases:
        facts = derived.extend({"host.platform": "cuda", "engine.version": case.engine, **case.facts})
        found = trace(item, facts)
        assert bool(found.fired) is (first_holding(item, facts) is not None)
        assert found.sentence.startswith("It fired: " if found.fired else "It did not fire: ")
