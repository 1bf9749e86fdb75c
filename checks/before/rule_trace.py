"""Explain why a cause fires on a launch or not: every rule of the cause, every condition in it, with its fact.

`rules` makes the judgement, which a trace never changes; `checks.during.trace` explains log signatures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from checks.before.rules import fill, first_holding
from checks.catalog.conditions import Facts, Step, explain
from checks.catalog.entries import Constraint, Entry
from checks.facts.trace_words import why_not
from checks.vocabulary import Severity


class TracedRule(Struct, frozen=True, kw_only=True):
    """One rule of a cause, evaluated against the facts."""

    number: int
    severity: Severity
    message: str
    engine: str  # releases that the rule applies to; empty: all
    applies: bool  # whether the release of the launch is among them
    condition: Step

    @property
    def holds(self) -> bool | None:
        """Whether the rule would fire if it were the only one; None when unknown facts leave that undecided."""
        return self.condition.holds if self.applies else False


class RuleTrace(Struct, frozen=True, kw_only=True):
    """All rules of one cause, evaluated for one launch."""

    id: str
    release: str  # of the launch; empty when unknown
    engine: str  # releases that the cause applies to; empty: all
    applies: bool
    rules: tuple[TracedRule, ...]
    fired: int  # number of the rule that fired; 0: none
    sentence: str


def trace(item: Entry, facts: Facts, accepted: Mapping[str, str] | None = None) -> RuleTrace:
    """Return the trace of a cause. `accepted` maps the ids of findings that the profile accepts to its reasons."""
    version = facts.get("engine.version")
    rules = tuple(_traced(number, rule, facts) for number, rule in enumerate(item.before, 1))
    holding = first_holding(item, facts)
    fired = next((number for number, rule in enumerate(item.before, 1) if rule is holding), 0)
    applies = item.engine.contains(version)
    sentence = " ".join(_sentences(item, rules, fired, str(version or ""), (accepted or {}).get(item.id)))
    return RuleTrace(
        id=item.id,
        release=str(version or ""),
        engine=item.engine.text,
        applies=applies,
        rules=rules,
        fired=fired,
        sentence=sentence,
    )


def _traced(number: int, rule: Constraint, facts: Facts) -> TracedRule:
    return TracedRule(
        number=number,
        severity=rule.severity,
        message=fill(rule.message, facts),
        engine=rule.engine.text,
        applies=rule.engine.contains(facts.get("engine.version")),
        condition=explain(rule.when.written, facts),
    )


def _sentences(
    item: Entry, rules: tuple[TracedRule, ...], fired: int, version: str, accepted: str | None
) -> Iterator[str]:
    if fired:
        acceptance = "" if accepted is None else f", and the profile accepts it: {accepted.rstrip('.')}"
        yield f"It fired: rule {fired} holds{acceptance}."
    elif not rules:
        yield f"It did not fire: the cause has no launch rule. Trace a log: `diagnose log FILE --trace {item.id}`."
    elif not item.engine.contains(version or None):
        yield f"It did not fire: the cause applies to SGLang {item.engine.text}, but the launch uses {version}."
    else:
        yield _reason(rules, version)


def _reason(rules: tuple[TracedRule, ...], version: str) -> str:
    """Explain the rule that came closest to firing: the one with the fewest conditions that do not hold."""
    applicable = [rule for rule in rules if rule.applies]
    if not applicable:
        return f"It did not fire: none of its rules applies to SGLang {version}."
    nearest = min(applicable, key=lambda rule: sum(step.holds is not True for step in rule.condition.steps))
    return f"It did not fire: in rule {nearest.number} {why_not(nearest.condition)}."
