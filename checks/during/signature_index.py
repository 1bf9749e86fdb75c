"""The part of the knowledge that a diagnosis needs, in one document instead of 250 YAML files.

`signature_build` makes it from the folders, and `launcher.knowledge_cache` stores it between runs.
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
    yields_to: tuple[str, ...]  # ids of entries that take precedence, from the entry and from the pattern
    fails: str  # see catalog.Pattern

    @property
    def condition(self) -> Condition | None:
        """The parsed condition."""
        return parse_condition(self.when) if self.when else None


class Advice(Struct, frozen=True):
    """The texts on a cause: why it happens, with {captured} names as placeholders, and all remedies of any launch."""

    why: str
    remedies: tuple[Remedy, ...]


class Index(Struct, frozen=True, kw_only=True, dict=True):
    """Every rule, the words that a scan looks for, the phases, and the advice on each cause."""

    rules: tuple[Rule, ...]
    needs: Mapping[str, tuple[str, ...]]  # regex → literals; each line it matches contains one of them
    literals: Words  # all literals of `needs`, for the search in the lines of incidents
    words: Words  # a cover of all literals except ordinary ones, for the scan of whole logs
    phases: tuple[Phase, ...]
    advices: Mapping[str, Raw]  # cause → Advice, decoded lazily: a diagnosis needs one of 200

    @cached_property
    def regexes(self) -> tuple[str, ...]:
        """Every regex of every rule, once."""
        return tuple(self.needs)

    def advice(self, entry: str) -> Advice:
        """Return the advice on the cause with this id. Raises KeyError for an unknown id."""
        return msgspec.json.decode(self.advices[entry], type=Advice)


def encode(index: Index) -> bytes:
    """Return the index as a document."""
    return msgspec.json.encode(index)


def decode(document: bytes) -> Index:
    """Return the index in a document. Raises ValueError if it is damaged, or written by another launcher release."""
    return msgspec.json.decode(document, type=Index)
