"""Where facts came from, in words."""

from __future__ import annotations

from checks.facts.launch_evidence import Launch, build, gather
from checks.facts.origins import derived_by, origin, without_derived, worked_out

LAUNCH = Launch(engine="0.5.10", flags={"tp": "2"}, gpu={"name": "RTX PRO 6000 Blackwell", "sm": 120})


def test_what_is_worked_out_names_the_module_and_what_was_measured_does_not() -> None:
    base, _ = gather(LAUNCH)
    found = derived_by(base)
    assert found["launch.tp_size"] == "checks/facts/derived/parallel.py"
    assert found["host.vram_gb"] == "checks/facts/derived/hardware.py"
    assert "host.sm" not in found and "flag.tp-size" not in found
    assert set(base) | set(found) == set(build(LAUNCH)[0])


def test_a_value_that_is_put_under_another_name_was_changed_by_that_module() -> None:
    base, _ = gather(Launch(observed={"kind": "NaN in logits"}))
    assert derived_by(base)["observed.kind"] == "checks/facts/derived/observed.py"


def test_each_way_to_know_a_fact_has_its_words() -> None:
    facts, _ = build(LAUNCH)
    base, _ = gather(LAUNCH)
    sources = {"flag.tp-size": "set in p.yaml:3:5", "host.": "read from box by x", **worked_out(base)}
    assert origin("flag.tp-size", facts, sources) == "set in p.yaml:3:5"
    assert origin("host.sm", facts, sources) == "read from box by x"
    assert origin("launch.tp_size", facts, sources) == "derived by checks/facts/derived/parallel.py"
    assert origin("engine.version", facts, {}) == "assumed by default"
    assert origin("flag.dp-size", facts, sources) == "absent: the launch does not set it"
    assert origin("host.sn", facts, sources) == "unknown: this name is not registered"
    unknown = origin("launch.context_over", facts, sources)
    assert unknown.startswith("unknown: it was not measured; checks/facts/derived/attention.py measures it when ")


def test_derived_facts_are_taken_away_unless_somebody_states_them() -> None:
    facts, _ = build(LAUNCH)
    left = without_derived(facts, {"launch.tp_size": "given in x"})
    assert "launch.tp_size" in left and "launch.pp_size" not in left and "flag.tp-size" in left
