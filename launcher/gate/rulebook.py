"""All rules over all releases, quickly: one launch is judged release after release, and only what may differ is asked.

The rules are those of `checks.constraints`; this module only decides which need not be asked again. A rule's answer
depends on the facts that it names and on nothing else, so between two releases only rules that name a changed fact, or
that begin or end there, are asked. It makes a gate of 200 profiles a matter of seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from checks import facts as fact_builder
from checks.catalog import Constraint, Entry, entry
from checks.constraints import fill
from checks.engines import load
from checks.facts import Launch
from checks.flag_check import check_flags
from checks.match import Facts
from checks.model import Evidence, Finding
from checks.remedies import fitting
from checks.rule_index import Rules

_MISSING = object()


@dataclass(frozen=True, slots=True)
class _Live:
    """The rules of one cause that hold in one release, in the order in which they speak."""

    id: str
    before: tuple[Constraint, ...]


class Rulebook:
    """Rules, sorted by release. Keeps what it has read; one per gate."""

    def __init__(self, rules: Iterable[Rules]) -> None:
        self._rules = tuple(rules)
        self._live: dict[str | None, tuple[_Live, ...]] = {}
        self._entries: dict[str, Entry | None] = {}
        names = {name for item in self._rules for rule in item.before for name in rule.when.names}
        self.packages = frozenset(name.removeprefix("package.") for name in names if name.startswith("package."))
        self._asking: dict[str, list[int]] = {name: [] for name in names}  # fact → rules that look at it
        for rule in (rule for item in self._rules for rule in item.before):
            for name in rule.when.names:
                self._asking[name].append(id(rule))

    def findings(self, launches: Iterable[Launch]) -> Iterator[list[Finding]]:
        """The findings of each launch. Fast when neighbours are alike, such as one profile over its releases."""
        previous: Facts = {}
        answers: dict[int, bool] = {}
        for launch in launches:
            schema = load(launch.engine or "")
            facts, _ = fact_builder.build(launch)
            self._forget(answers, _changed(previous, facts))
            previous = facts
            yield [*check_flags(launch.flags, launch.env, schema), *self._constrain(facts, answers)]

    def _constrain(self, facts: Facts, answers: dict[int, bool]) -> Iterator[Finding]:
        for item in self._of_release(facts.get("engine.version")):
            for rule in item.before:
                holds = answers.get(id(rule))
                if holds is None:
                    holds = answers[id(rule)] = rule.when.holds(facts)
                if holds:
                    yield self._finding(item.id, rule, facts)
                    break

    def _forget(self, answers: dict[int, bool], changed: set[str]) -> None:
        for name in changed & self._asking.keys():
            for rule in self._asking[name]:
                answers.pop(rule, None)

    def _of_release(self, version: str | None) -> tuple[_Live, ...]:
        if version not in self._live:
            self._live[version] = tuple(
                _Live(item.id, tuple(rule for rule in item.before if rule.engine.contains(version)))
                for item in self._rules
                if item.engine.contains(version)
            )
        return self._live[version]

    def _finding(self, slug: str, rule: Constraint, facts: Facts) -> Finding:
        known = self._entry(slug)
        seen = sorted(name for name in rule.when.names if facts.get(name) is not None)
        return Finding(
            id=slug,
            severity=rule.severity,
            message=fill(rule.message, facts),
            why=known.why if known else "",
            evidence=tuple(Evidence(text=f"{name} = {facts[name]}", source=name) for name in seen),
            remedies=fitting(known.remedies, facts, {}) if known else (),
            subject=rule.subject,
        )

    def _entry(self, slug: str) -> Entry | None:
        if slug not in self._entries:
            self._entries[slug] = entry(slug)
        return self._entries[slug]


def _changed(before: Facts, after: Facts) -> set[str]:
    """Names of facts that are not the same any more."""
    return _differing(before, after) | {name for name in before if name not in after}


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    return {name for name, value in after.items() if (old := before.get(name, _MISSING)) is not value and old != value}
