"""The `before` side of the knowledge as one JSON document: what a check of one launch has to load.

Reasons and remedies stay in the folders and are read for the few rules that fire. The log side is `signature_index`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from checks import KNOWLEDGE
from checks.catalog.entries import Constraint, Entry, constraint_from, entries
from checks.catalog.yaml_reader import from_plain, read
from checks.vocabulary import EngineRange


class Rules(Struct, frozen=True, kw_only=True):
    """The rules of one cause."""

    id: str
    engine: EngineRange
    before: tuple[Constraint, ...]


def of_entries(items: Iterable[Entry] | None = None) -> tuple[Rules, ...]:
    """Rules straight from the knowledge files."""
    found = entries() if items is None else items
    return tuple(Rules(id=item.id, engine=item.engine, before=item.before) for item in found if item.before)


def packages(items: Iterable[Rules]) -> frozenset[str]:
    """Every package that some rule looks at: where it is not installed, that is a fact, too."""
    names = (name for item in items for rule in item.before for name in rule.when.names)
    return frozenset(name.removeprefix("package.") for name in names if name.startswith("package."))


def build(root: Path = KNOWLEDGE) -> bytes:
    """The document. Raises YamlError when an entry is malformed."""
    rows = []
    for item in entries(root):
        if item.before:
            node = read(item.folder / "cause.yaml")
            rows.append({"id": item.id, "engine": item.engine.text, "before": node.need("before").plain()})
    return msgspec.json.encode(rows)


def load(document: bytes) -> tuple[Rules, ...]:
    """Rules out of a document. Raises ValueError, KeyError or TypeError when it is none."""
    return tuple(
        Rules(
            id=row["id"],
            engine=EngineRange(row["engine"]),
            before=tuple(constraint_from(from_plain(rule, row["id"])) for rule in row["before"]),
        )
        for row in msgspec.json.decode(document)
    )
