"""The log side of the knowledge in one plain document, read back: what diagnosing needs, without 250 YAML files.

`signature_build` makes the document from the folders; where it is kept between runs is the launcher's matter
(`launcher.knowledge_cache`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from checks.match import Condition, parse_condition
from checks.model import EngineRange, Remedy, Role
from checks.phases import Phase

FORMAT = 6
"""Raised when the document changes its form."""


class Rule(Struct, frozen=True, kw_only=True):
    """One pattern of one entry."""

    entry: str
    title: str
    role: Role
    all: tuple[str, ...]
    anywhere: tuple[str, ...]
    without: tuple[str, ...]
    when: Any  # the condition as written, or None
    engine: tuple[EngineRange, EngineRange]  # of the entry and of the pattern
    weight: int

    @property
    def condition(self) -> Condition | None:
        """The parsed condition."""
        return parse_condition(self.when) if self.when else None


class Index(Struct, frozen=True, kw_only=True):
    """Every rule, the words that lead to them, the phases, and what is said about a cause once it is found."""

    rules: tuple[Rule, ...]
    needs: Mapping[str, tuple[str, ...]]  # regex → literals one of which stands in each line it matches
    covers: Mapping[str, str]  # literal of `needs` → the word of `words` inside it; those without one are missing
    words: tuple[str, ...]
    phases: tuple[Phase, ...]
    advice: Mapping[str, Mapping[str, Any]]  # entry → {why, remedies} as plain data

    @classmethod
    def load(cls, document: dict[str, Any]) -> Index:
        """From the plain form."""
        return cls(
            rules=tuple(_rule(item) for item in document["rules"]),
            needs={regex: tuple(words) for regex, words in document["needs"].items()},
            covers=document["covers"],
            words=tuple(document["words"]),
            phases=tuple(Phase(**{**item, "starts": tuple(item["starts"])}) for item in document["phases"]),
            advice=document["advice"],
        )

    @cached_property
    def regexes(self) -> tuple[str, ...]:
        """Every regex of every rule, once."""
        return tuple(self.needs)

    def why(self, entry: str) -> str:
        """Why the cause of that id happens; may hold {captured} names."""
        return str(self.advice[entry]["why"])

    def remedies(self, entry: str) -> tuple[Remedy, ...]:
        """What helps against the cause of that id, for every release and every situation."""
        from checks.catalog import remedy_from
        from checks.yamlfile import from_plain

        return tuple(remedy_from(from_plain(item, entry)) for item in self.advice[entry]["remedies"])


def _rule(item: dict[str, Any]) -> Rule:
    return Rule(
        entry=item["entry"],
        title=item["title"],
        role=Role(item["role"]),
        all=tuple(item["all"]),
        anywhere=tuple(item["anywhere"]),
        without=tuple(item["without"]),
        when=item["when"],
        engine=(EngineRange(item["engine"][0]), EngineRange(item["engine"][1])),
        weight=item["weight"],
    )
