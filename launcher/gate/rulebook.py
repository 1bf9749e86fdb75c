"""Apply all rules to many launches quickly: a rule is evaluated again only if its facts differ from the launch before.

The rules are those of `checks.before.rules`; this module only decides which to evaluate. A rule's answer depends on the
facts that it names and on nothing else, and the profiles of one repository are similar, so a gate of 200 profiles takes
seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from checks.before.flags import check_flags
from checks.before.rule_index import Rules, packages
from checks.before.rules import finding
from checks.catalog.conditions import Facts
from checks.catalog.entries import Constraint
from checks.engine.flag_schema import load
from checks.facts import launch_evidence as fact_builder
from checks.facts.launch_evidence import Launch
from checks.vocabulary import Finding

_MISSING = object()


class _Live(Struct, frozen=True):
    """A rule that exists in a release. Of a cause's rules that hold, only the first is reported."""

    cause: str
    rule: Constraint


class _Release(Struct):
    """The rules of one release in order, the facts of the previous launch, and the rules that held for it."""

    live: tuple[_Live, ...]
    rules_by_fact: dict[str, tuple[int, ...]]  # fact → numbers of the rules that depend on it
    facts: Facts | None = None
    holding: set[int] = field(default_factory=set)


class Rulebook:
    """All rules, sorted by release. It keeps their answers between launches; a gate needs only one Rulebook."""

    def __init__(self, rules: Iterable[Rules]) -> None:
        self._rules = tuple(rules)
        self._releases: dict[str | None, _Release] = {}
        self.packages = packages(self._rules)

    def findings(self, launches: Iterable[Launch]) -> Iterator[list[Finding]]:
        """Yield the findings of each launch. Fast if a launch resembles the previous one on the same release."""
        for launch in launches:
            facts, _ = fact_builder.build(launch)
            flag_findings = check_flags(launch.flags, launch.env, load(launch.engine or ""))
            yield [*flag_findings, *self._constrain(self._release(launch.engine), facts)]

    def _constrain(self, release: _Release, facts: Facts) -> Iterator[Finding]:
        for number in _to_evaluate(release, facts):
            if release.live[number].rule.when.holds(facts):
                release.holding.add(number)
            else:
                release.holding.discard(number)
        release.facts = facts
        reported: set[str] = set()
        for number in sorted(release.holding):
            item = release.live[number]
            if item.cause not in reported:
                reported.add(item.cause)
                yield finding(item.cause, item.rule, facts)

    def _release(self, version: str | None) -> _Release:
        if version not in self._releases:
            live = tuple(
                _Live(item.id, rule)
                for item in self._rules
                if item.engine.contains(version)
                for rule in item.before
                if rule.engine.contains(version)
            )
            by_fact: dict[str, list[int]] = {}
            for number, item in enumerate(live):
                for name in item.rule.when.names:
                    by_fact.setdefault(name, []).append(number)
            self._releases[version] = _Release(live, {name: tuple(numbers) for name, numbers in by_fact.items()})
        return self._releases[version]


def _to_evaluate(release: _Release, facts: Facts) -> Iterable[int]:
    """Numbers of the rules whose answer may differ from that for the previous launch."""
    before = release.facts
    if before is None:
        return range(len(release.live))
    changed = {name for name, value in facts.items() if not _same(before.get(name, _MISSING), value)}
    changed.update(name for name in before if name not in facts)
    return {number for name in changed & release.rules_by_fact.keys() for number in release.rules_by_fact[name]}


def _same(before: object, after: object) -> bool:
    """Whether two values are equal and of the same type: a rule distinguishes 1 from true."""
    return before is after or (type(before) is type(after) and before == after)
