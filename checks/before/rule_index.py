"""The `before` rules of the knowledge as one section of the compiled index, which a launch check has to load.

Explanations and remedies stay in the folders and are read only for the few rules that fire. The index of log
signatures is `checks.during.signature_index`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from checks import KNOWLEDGE
from checks.catalog.conditions import parse_condition
from checks.catalog.entries import Constraint, Entry, entries, folders
from checks.catalog.entries import load as load_entry
from checks.catalog.yaml_reader import read
from checks.vocabulary import EngineRange, Severity


class Rules(Struct, frozen=True, kw_only=True):
    """The rules of one cause."""

    id: str
    engine: EngineRange
    before: tuple[Constraint, ...]


class _StoredRule(Struct, frozen=True, kw_only=True):
    """A rule as the index stores it: its condition as written, which is parsed on loading."""

    when: Any
    severity: Severity
    message: str
    engine: EngineRange
    subject: str


class _StoredRules(Struct, frozen=True, kw_only=True):
    id: str
    engine: EngineRange
    before: tuple[_StoredRule, ...]


def of_entries(items: Iterable[Entry] | None = None) -> tuple[Rules, ...]:
    """Return the rules read directly from the knowledge files, without the index."""
    chosen = entries() if items is None else items
    return tuple(Rules(id=item.id, engine=item.engine, before=item.before) for item in chosen if item.before)


def packages(items: Iterable[Rules]) -> frozenset[str]:
    """Return every package that a rule depends on: that one is not installed is a fact too."""
    names = (name for item in items for rule in item.before for name in rule.when.names)
    return frozenset(name.removeprefix("package.") for name in names if name.startswith("package."))


def build(root: Path = KNOWLEDGE) -> bytes:
    """Return the section of the index as JSON. Raises YamlError when an entry is malformed."""
    rows = []
    for folder in folders(root):
        item = load_entry(folder)
        if item.before:
            rules = read(folder / "cause.yaml").need("before").sequence()
            conditions = [rule.need("when").plain() for rule in rules]
            stored = tuple(map(_stored, item.before, conditions))
            rows.append(_StoredRules(id=item.id, engine=item.engine, before=stored))
    return msgspec.json.encode(rows)


def load(section: bytes) -> tuple[Rules, ...]:
    """Return the rules of a section. Raises ValueError when the section is damaged."""
    return tuple(
        Rules(id=row.id, engine=row.engine, before=tuple(map(_rule, row.before)))
        for row in msgspec.json.decode(section, type=tuple[_StoredRules, ...])
    )


def _stored(rule: Constraint, condition: Any) -> _StoredRule:
    return _StoredRule(
        when=condition, severity=rule.severity, message=rule.message, engine=rule.engine, subject=rule.subject
    )


def _rule(stored: _StoredRule) -> Constraint:
    return Constraint(
        when=parse_condition(stored.when),
        severity=stored.severity,
        message=stored.message,
        engine=stored.engine,
        subject=stored.subject,
    )
