"""All rules over many launches, quickly: of two launches on one release only what differs is asked again.

The rules are those of `checks.before.rules`; this module only decides which need not be asked. A rule's answer depends
on the facts that it names and on nothing else, and the profiles of one repository are much alike: it makes a gate of
200 profiles a matter of seconds.
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
    """A rule that holds in a release. The first one of a cause speaks."""

    cause: str
    rule: Constraint


class _Release(Struct):
    """The rules of one release in their order, the facts of the launch before, and which rules held for it."""

    live: tuple[_Live, ...]
    asking: dict[str, tuple[int, ...]]  # fact → rules that look at it
    facts: Facts | None = None
    holding: set[int] = field(default_factory=set)


class Rulebook:
    """Rules, sorted by release. Keeps what it has read; one per gate."""

    def __init__(self, rules: Iterable[Rules]) -> None:
        self._rules = tuple(rules)
        self._releases: dict[str | None, _Release] = {}
        self.packages = packages(self._rules)

    def findings(self, launches: Iterable[Launch]) -> Iterator[list[Finding]]:
        """The findings of each launch. Fast when it is like the one before it on the same release."""
        for launch in launches:
            facts, _ = fact_builder.build(launch)
            found = check_flags(launch.flags, launch.env, load(launch.engine or ""))
            yield [*found, *self._constrain(self._release(launch.engine), facts)]

    def _constrain(self, release: _Release, facts: Facts) -> Iterator[Finding]:
        for number in _to_ask(release, facts):
            if release.live[number].rule.when.holds(facts):
                release.holding.add(number)
            else:
                release.holding.discard(number)
        release.facts = facts
        spoken: set[str] = set()
        for number in sorted(release.holding):
            item = release.live[number]
            if item.cause not in spoken:
                spoken.add(item.cause)
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
            asking: dict[str, list[int]] = {}
            for number, item in enumerate(live):
                for name in item.rule.when.names:
                    asking.setdefault(name, []).append(number)
            self._releases[version] = _Release(live, {name: tuple(numbers) for name, numbers in asking.items()})
        return self._releases[version]


def _to_ask(release: _Release, facts: Facts) -> Iterable[int]:
    """Rules whose answer may differ from the one for the launch before."""
    before = release.facts
    if before is None:
        return range(len(release.live))
    changed = {name for name, value in facts.items() if not _same(before.get(name, _MISSING), value)}
    changed.update(name for name in before if name not in facts)
    return {number for name in changed & release.asking.keys() for number in release.asking[name]}


def _same(before: object, after: object) -> bool:
    """Equal and of one type: to a rule, 1 and true are not the same."""
    return before is after or (type(before) is type(after) and before == after)
