"""Judge a launch before it starts: facts × rules of the knowledge → findings. `flags` checks the flags themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable

from checks.before.flags import check_flags
from checks.before.rule_index import Rules, of_entries
from checks.catalog.conditions import Facts
from checks.catalog.entries import Constraint, Entry, entry
from checks.engine.flag_schema import load
from checks.engine.remedies import fitting
from checks.facts import launch_evidence as fact_builder
from checks.facts.launch_evidence import Launch, load_newest
from checks.vocabulary import Evidence, Finding, Severity

_PLACEHOLDER = re.compile(r"\{([a-z_]+\.[A-Za-z0-9_.-]+)\}")
_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


def check(launch: Launch, rules: Iterable[Rules] | None = None) -> list[Finding]:
    """Return every finding on a launch, errors first, one per id and subject.

    `rules` are preloaded rules, for speed; without them the knowledge files are read.
    """
    schema = load(launch.engine) if launch.engine else load_newest()
    facts, _ = fact_builder.build(launch)
    findings = [*check_flags(launch.flags, launch.env, schema), *constrain(facts, rules)]
    unique: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        unique.setdefault((finding.id, finding.subject), finding)
    return sorted(unique.values(), key=lambda finding: (_ORDER[finding.severity], finding.id))


def constrain(facts: Facts, rules: Iterable[Rules] | None = None) -> list[Finding]:
    """Return the findings of the `before` rules; of each cause, the first rule that holds fires."""
    findings = []
    for item in of_entries() if rules is None else rules:
        rule = first_holding(item, facts)
        if rule is not None:
            findings.append(finding(item.id, rule, facts))
    return findings


def first_holding(item: Rules | Entry, facts: Facts) -> Constraint | None:
    """Return the first `before` rule of a cause that holds for these facts; None without one."""
    version = facts.get("engine.version")
    if not item.engine.contains(version):
        return None
    return next((rule for rule in item.before if rule.engine.contains(version) and rule.when.holds(facts)), None)


def finding(slug: str, rule: Constraint, facts: Facts) -> Finding:
    """Return the finding of a rule that holds for these facts, with the facts as evidence."""
    known = entry(slug)
    names = sorted(name for name in rule.when.names if facts.get(name) is not None)
    return Finding(
        id=slug,
        severity=rule.severity,
        message=fill(rule.message, facts),
        why=known.why if known else "",
        evidence=tuple(Evidence(text=f"{name} = {facts[name]}", source=name) for name in names),
        remedies=fitting(known.remedies, facts, {}) if known else (),
        subject=rule.subject,
    )


def fill(template: str, facts: Facts) -> str:
    """Return a message with each `{namespace.name}` replaced by the fact.

    An unknown release becomes "this release", any other unknown fact `?`.
    """
    return _PLACEHOLDER.sub(lambda match: _shown(match[1], facts.get(match[1])), template)


def _shown(name: str, value: object) -> str:
    if value is None:
        return "this release" if name == "engine.version" else "?"
    return str(value)
