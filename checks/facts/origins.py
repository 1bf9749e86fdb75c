"""Where the facts of one launch came from, in words, for `--trace`. What a fact means is in `names`."""

from __future__ import annotations

from collections.abc import Mapping

from checks.catalog.conditions import CLOSED, Facts
from checks.facts.derived import DERIVATIONS
from checks.facts.names import lookup

Sources = Mapping[str, str]
"""Fact (`flag.tp-size`) or namespace (`host.`) → who stated or measured it, in words."""

_DERIVED = "checks/facts/derived/"


def derived_by(facts: Facts) -> dict[str, str]:
    """Each fact that is worked out from these → the module that does so."""
    extended, found = dict(facts), dict[str, str]()
    for derive in DERIVATIONS:
        made = derive(extended)
        module = derive.__module__.replace(".", "/") + ".py"
        for name, value in made.items():
            if name not in extended or extended[name] != value:
                found[name] = _registered_module(name) or module
        extended.update(made)
    return found


def origin(name: str, facts: Facts, sources: Sources) -> str:
    """Where a fact came from; for one that is not there, why not and what would measure it."""
    if name in facts:
        stated = sources.get(name) or sources.get(name.partition(".")[0] + ".")
        return stated or "taken for granted, as nothing says otherwise"
    if name.startswith(CLOSED):
        return "absent: nothing sets it"
    fact = lookup(name)
    if fact is None:
        return "unknown: this name is not registered"
    return f"unknown: nobody measured it; {' and '.join(fact.measured_by)} would, when {fact.when}"


def worked_out(facts: Facts) -> dict[str, str]:
    """`derived_by` in the words of Sources."""
    return {name: f"worked out by {module}" for name, module in derived_by(facts).items()}


def without_derived(facts: Facts, stated: Sources) -> dict[str, object]:
    """What is left of finished facts when those that are worked out are taken away, unless somebody states them."""
    return {name: value for name, value in facts.items() if name in stated or not _registered_module(name)}


def _registered_module(name: str) -> str:
    fact = lookup(name)
    return next((module for module in fact.measured_by if module.startswith(_DERIVED)), "") if fact else ""
