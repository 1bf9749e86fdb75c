"""The log side of the knowledge in one document: what diagnosing needs, without 250 YAML files.

`signature_build` makes it from the folders; where it is kept between runs is the launcher's matter
(`launcher.knowledge_cache`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Raw, Struct

from checks.catalog.conditions import Condition, parse_condition
from checks.during.log.phases import Phase
from checks.during.log.word_search import Words
from checks.vocabulary import EngineRange, Remedy, Role, Weight


class Rule(Struct, frozen=True, kw_only=True):
    """One pattern of one entry."""

    entry: str
    number: int  # position among the patterns of its entry, from 0
    title: str
    role: Role
    all: tuple[str, ...]
    anywhere: tuple[str, ...]
    without: tuple[str, ...]
    when: Any  # the condition as written, or None
    engine: tuple[EngineRange, EngineRange]  # of the entry and of the pattern
    weight: Weight
    yields_to: tuple[str, ...]  # ids of entries, those of the entry and of the pattern together
    fails: str  # see catalog.Pattern

    @property
    def condition(self) -> Condition | None:
        """The parsed condition."""
        return parse_condition(self.when) if self.when else None


class Advice(Struct, frozen=True):
    """What is said about a cause: why it happens, may hold {captured} names, and what helps, whatever the launch."""

    why: str
    remedies: tuple[Remedy, ...]


class Index(Struct, frozen=True, kw_only=True, dict=True):
    """Every rule, the words that lead to them, the phases, and what is said about a cause once it is found."""

    rules: tuple[Rule, ...]
    needs: Mapping[str, tuple[str, ...]]  # regex → literals one of which stands in each line it matches
    literals: Words  # all of `needs`: looked for in the lines of incidents
    words: Words  # that stand in all literals, but for ordinary ones: looked for in whole logs
    phases: tuple[Phase, ...]
    advices: Mapping[str, Raw]  # cause → Advice, not read yet: a diagnosis wants one of 200

    @cached_property
    def regexes(self) -> tuple[str, ...]:
        """Every regex of every rule, once."""
        return tuple(self.needs)

    def advice(self, entry: str) -> Advice:
        """What is said about the cause of that id."""
        return msgspec.json.decode(self.advices[entry], type=Advice)


def encode(index: Index) -> bytes:
    """The document."""
    return msgspec.json.encode(index)


def decode(document: bytes) -> Index:
    """The index in a document. Raises ValueError for one that is damaged, or was written by another release."""
    return msgspec.json.decode(document, type=Index)
