"""Before a launch: Facts × knowledge → findings. What an engine's own parser refuses is in `flag_check`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from checks import facts as fact_builder
from checks.catalog import Constraint, Entry, entries
from checks.engines import load
from checks.facts import Launch, load_newest
from checks.flag_check import check_flags
from checks.match import Facts
from checks.model import Evidence, Finding, Severity
from checks.remedies import fitting

_PLACEHOLDER = re.compile(r"\{([a-z_]+\.[A-Za-z0-9_.-]+)\}")
_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


def check(launch: Launch) -> list[Finding]:
    """Every finding on a launch, errors first; one finding per id and subject."""
    schema = load(launch.engine) if launch.engine else load_newest()
    facts, _ = fact_builder.build(launch)
    findings = [*check_flags(launch.flags, launch.env, schema), *constrain(facts)]
    unique: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        unique.setdefault((finding.id, finding.subject), finding)
    return sorted(unique.values(), key=lambda finding: (_ORDER[finding.severity], finding.id))


def constrain(facts: Facts, catalog: Iterable[Entry] | None = None) -> list[Finding]:
    """Findings of the `before` rules. Among the rules of one cause the first that holds speaks."""
    found = []
    for item in entries() if catalog is None else catalog:
        rule = first_holding(item, facts)
        if rule is not None:
            found.append(_finding(item, rule, facts))
    return found


def first_holding(item: Entry, facts: Facts) -> Constraint | None:
    """The first `before` rule of a cause that holds for these facts."""
    version = facts.get("engine.version")
    if not item.engine.contains(version):
        return None
    return next((rule for rule in item.before if rule.engine.contains(version) and rule.when.holds(facts)), None)


def _finding(item: Entry, rule: Constraint, facts: Facts) -> Finding:
    seen = sorted(name for name in rule.when.names if facts.get(name) is not None)
    return Finding(
        id=item.id,
        severity=rule.severity,
        message=fill(rule.message, facts),
        why=item.why,
        evidence=tuple(Evidence(text=f"{name} = {facts[name]}", source=name) for name in seen),
        remedies=fitting(item.remedies, facts, {}),
        subject=rule.subject,
    )


def fill(template: str, facts: Facts) -> str:
    """A message with `{namespace.name}` replaced by the fact; unknown facts read `?`."""
    return _PLACEHOLDER.sub(lambda match: str(facts.get(match[1], "?")), template)
