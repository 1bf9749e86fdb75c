"""Describe where the facts of one launch came from, for `--trace`. `names` defines what a fact means."""

from __future__ import annotations

from collections.abc import Mapping

from checks.catalog.conditions import CLOSED, Facts
from checks.facts.derived import DERIVATIONS
from checks.facts.names import lookup

Sources = Mapping[str, str]
"""Fact (`flag.tp-size`) or namespace (`host.`) → the source that stated or measured it, in words."""

_DERIVED = "checks/facts/derived/"


def derived_by(facts: Facts) -> dict[str, str]:
    """Return a mapping from each fact that is derived from these facts to the module that derives it."""
    extended, modules = dict(facts), dict[str, str]()
    for derive in DERIVATIONS:
        derived = derive(extended)
        module = derive.__module__.replace(".", "/") + ".py"
        for name, value in derived.items():
            if name not in extended or extended[name] != value:
                modules[name] = _registered_module(name) or module
        extended.update(derived)
    return modules


def origin(name: str, facts: Facts, sources: Sources) -> str:
    """Return where a fact came from; for a missing fact, why it is missing and what would measure it."""
    if name in facts:
        source = sources.get(name) or sources.get(name.partition(".")[0] + ".")
        return source or "assumed by default"
    if name.startswith(CLOSED):
        return "absent: the launch does not set it"
    fact = lookup(name)
    if fact is None:
        return "unknown: this name is not registered"
    measure = "measures" if len(fact.measured_by) == 1 else "measure"
    return f"unknown: it was not measured; {' and '.join(fact.measured_by)} {measure} it when {fact.when}"


def worked_out(facts: Facts) -> dict[str, str]:
    """Return `derived_by` as Sources."""
    return {name: f"derived by {module}" for name, module in derived_by(facts).items()}


def without_derived(facts: Facts, stated: Sources) -> dict[str, object]:
    """Return complete facts without the derived ones, except for derived facts that a source states."""
    return {name: value for name, value in facts.items() if name in stated or not _registered_module(name)}


def _registered_module(name: str) -> str:
    fact = lookup(name)
    return next((module for module in fact.measured_by if module.startswith(_DERIVED)), "") if fact else ""
