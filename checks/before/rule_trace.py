"""Why a rule fires on a launch, or does not: every rule of one cause, every condition in it, each with its fact.

The judgement itself is `rules`, which this never changes; the log side is `checks.during.trace`.
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
    """One rule of a cause, held against the facts."""

    number: int
    severity: Severity
    message: str
    engine: str  # releases that the rule is about; empty: all
    applies: bool  # the release of the launch is among them
    condition: Step

    @property
    def holds(self) -> bool | None:
        """Whether it speaks, were it the only rule."""
        return self.condition.holds if self.applies else False


class RuleTrace(Struct, frozen=True, kw_only=True):
    """All rules of one cause, held against one launch."""

    id: str
    release: str  # of the launch; empty where nobody knows it
    engine: str  # releases that the cause is about; empty: all
    applies: bool
    rules: tuple[TracedRule, ...]
    fired: int  # number of the rule that speaks; 0: none
    sentence: str


def trace(item: Entry, facts: Facts, accepted: Mapping[str, str] | None = None) -> RuleTrace:
    """The trace of a cause. `accepted`: findings that the profile lives with, each with its reason."""
    version = facts.get("engine.version")
    rules = tuple(_traced(number, rule, facts) for number, rule in enumerate(item.before, 1))
    spoken = first_holding(item, facts)
    fired = next((number for number, rule in enumerate(item.before, 1) if rule is spoken), 0)
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
        lives = "" if accepted is None else f", and the profile accepts it: {accepted.rstrip('.')}"
        yield f"It fired: rule {fired} holds{lives}."
    elif not rules:
        yield f"It did not fire: it has no rule for a launch. Ask a log: `diagnose log FILE --trace {item.id}`."
    elif not item.engine.contains(version or None):
        yield f"It did not fire: the cause is about SGLang {item.engine.text}, the launch uses {version}."
    else:
        yield _reason(rules, version)


def _reason(rules: tuple[TracedRule, ...], version: str) -> str:
    """The reason of the rule that comes nearest: the one with the fewest conditions that do not hold."""
    able = [rule for rule in rules if rule.applies]
    if not able:
        return f"It did not fire: none of its rules is about SGLang {version}."
    nearest = min(able, key=lambda rule: sum(step.holds is not True for step in rule.condition.steps))
    return f"It did not fire: in rule {nearest.number} {why_not(nearest.condition)}."
