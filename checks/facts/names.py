"""The registry of facts: what a name means, which type its value has, and which module measures it.

Read from `knowledge/facts/*.yaml`, one file a namespace. Checks and diagnoses never load it; lint, the reference page
and `--trace` do. How facts are made is in `launch_evidence` and `derived`; how they are compared in `conditions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from msgspec import Struct

from checks import KNOWLEDGE
from checks.catalog.conditions import as_number
from checks.catalog.yaml_reader import Node, read
from checks.engine.flag_history import (
    canonical_elsewhere,
    flag_span,
    known_options,
    known_variables,
    variable_span,
)
from checks.engine.flag_schema import Flag, FlagSchema, available, load
from checks.facts.derived.tables import all_requirements
from checks.vocabulary import EngineRange

FOLDER = KNOWLEDGE / "facts"
TYPES = ("text", "number", "flag", "list", "choice", "mapping")
PROOFS = ("flag-schemas", "variables", "requirements", "named-group", "keys")
GIVEN = "given"
"""Stands for a module where a profile, a facts file or a caller states the fact."""
NUMBERS = ("int", "float", "human_readable_int")
STATED = ("flag", "env", "engine", "observed")
"""Namespaces whose facts a launch or a caller states. All others are measured, or a rule waits for them in vain."""


class Fact(Struct, frozen=True, kw_only=True):
    """One name that conditions and templates may use."""

    name: str
    type: str
    meaning: str
    measured_by: tuple[str, ...]  # modules, the first one first; or `given`
    when: str  # what must be the case for the fact to be known
    since: str
    unit: str = ""
    choices: tuple[str, ...] = ()

    @property
    def measured(self) -> bool:
        """Some module produces it, or it is one of those that a launch itself states."""
        return self.measured_by != (GIVEN,) or self.name.partition(".")[0] in STATED

    def accepts(self, value: object) -> bool:
        """Whether a value is of this type. Null is: looked for and absent. Numbers may come as typed text."""
        match value:
            case None:
                return True
            case bool():
                return self.type == "flag"
            case int() | float():
                return self.type in ("number", "text")
            case str():
                return self.type == "text" or (self.type == "choice" and value in self.choices) or (
                    self.type == "number" and as_number(value) is not None
                )  # fmt: skip
            case list() | tuple():
                return self.type == "list"
            case _:
                return self.type == "mapping"


class Pattern(Struct, frozen=True, kw_only=True):
    """Names that are open by nature, as one record: `flag.<option>`."""

    name: str
    fact: Fact  # of any such name, but for its own name
    proven_by: str
    keys: Mapping[str, str]  # key → type: the whole proof, or names besides those that releases require


class Namespace(Struct, frozen=True, kw_only=True):
    """The part of a name before the first dot."""

    name: str
    meaning: str
    closed: bool  # what is not there is absent; else it is unknown
    when: str  # what must be the case for its facts to be known, where a record does not say otherwise
    facts: Mapping[str, Fact]  # by full name
    patterns: tuple[Pattern, ...]


@cache
def namespaces() -> Mapping[str, Namespace]:
    """The whole registry. Raises YamlError for the first record that is malformed."""
    found = (_namespace(path.stem, read(path)) for path in sorted(FOLDER.glob("*.yaml")))
    return {item.name: item for item in found}


@cache
def lookup(name: str) -> Fact | None:
    """The record of a fact, or one made by a pattern that proves the name; None when the name is not known."""
    space = namespaces().get(name.partition(".")[0])
    if space is None:
        return None
    known = space.facts.get(name)
    if known is not None:
        return known
    return next((fact for pattern in space.patterns if (fact := _proven(pattern, name))), None)


def known_names() -> Iterator[str]:
    """Every name with a record of its own, and every proven flag and variable: what a wrong name is compared with."""
    for space in namespaces().values():
        yield from space.facts
        for pattern in space.patterns:
            yield from (_full(pattern, key) for key in pattern.keys)
    yield from (f"flag.{name}" for name in known_options())
    yield from (f"env.{name}" for name in known_variables())
    yield from (f"package.{name}" for name in _required())


def flag_choices(option: str, engine: EngineRange) -> frozenset[str]:
    """The words that an option takes in some release of a range; empty where one of them takes any word."""
    words: set[str] = set()
    for flag in _flags(option, engine):
        if not flag.choices:
            return frozenset()
        words |= set(map(str, flag.choices))
    return frozenset(words)


def flag_types(option: str) -> frozenset[str]:
    """`flag`, `number`, `text`: what an option is in the releases that have it."""
    return frozenset(_flag_type(flag) for flag in _flags(option, EngineRange()))


def _flags(option: str, engine: EngineRange) -> Iterator[Flag]:
    for version in available():
        schema: FlagSchema = load(version)
        spelled = schema.spell(option) if engine.contains(version) else None
        if spelled is not None and spelled in schema.by_name:
            yield schema.by_name[spelled]


def _flag_type(flag: Flag) -> str:
    if flag.is_switch:
        return "flag"
    return "number" if flag.type in NUMBERS else "text"


def _proven(pattern: Pattern, name: str) -> Fact | None:
    fact, key = pattern.fact, _key(pattern, name)
    if key is None:
        return None
    match pattern.proven_by:
        case "flag-schemas":
            span = flag_span(key) if canonical_elsewhere(key) == key else None
            if span is None:
                return None
            flag = load(span.last).by_name.get(key)
            choices = tuple(map(str, flag.choices or ())) if flag else ()
            return _named(fact, name, _flag_type(flag) if flag else "text", choices)
        case "variables":
            return _named(fact, name) if variable_span(key) else None
        case "requirements":
            return _named(fact, name) if key in pattern.keys or key in _required() else None
        case "keys":
            return _named(fact, name, pattern.keys[key]) if key in pattern.keys else None
        case _:
            return _named(fact, name)  # the group is looked for in the entry's own patterns, by lint


@cache
def _required() -> frozenset[str]:
    items = all_requirements().values()
    return frozenset(name for item in items for name in (*item.requires, *item.minimum))


def _named(fact: Fact, name: str, kind: str = "", choices: tuple[str, ...] = ()) -> Fact:
    return Fact(
        name=name,
        type=kind or fact.type,
        meaning=fact.meaning,
        measured_by=fact.measured_by,
        when=fact.when,
        since=fact.since,
        choices=choices,
    )


def _key(pattern: Pattern, name: str) -> str | None:
    head = pattern.name[: pattern.name.index("<")]
    return name.removeprefix(head) if name.startswith(head) and name != head else None


def _full(pattern: Pattern, key: str) -> str:
    return re.sub(r"<\w+>", lambda _: key, pattern.name)


def _namespace(name: str, node: Node) -> Namespace:
    node.mapping(["meaning", "closed", "when", "facts", "patterns"])
    when = node.need("when").text()
    facts, patterns = node.get("facts"), node.get("patterns")
    records = (_fact(f"{name}.{key}", item, when) for key, item in (facts.mapping() if facts else {}).items())
    return Namespace(
        name=name,
        meaning=node.need("meaning").text(),
        closed=node.need("closed").flag(),
        when=when,
        facts={fact.name: fact for fact in records},
        patterns=tuple(
            _pattern(f"{name}.{key}", item, when) for key, item in (patterns.mapping() if patterns else {}).items()
        ),
    )


_KEYS = ("type", "choices", "unit", "meaning", "measured-by", "when", "since")


def _fact(name: str, node: Node, when: str, more: tuple[str, ...] = ()) -> Fact:
    node.mapping((*_KEYS, *more))
    measured, choices, unit, own = (node.get(key) for key in ("measured-by", "choices", "unit", "when"))
    if measured is None:
        raise node.fail("`measured-by` is missing")
    kind = _one_of(node.need("type"), TYPES)
    if (kind == "choice") is not (choices is not None):
        raise node.fail("`choices` belong to the type `choice`, and to no other")
    return Fact(
        name=name,
        type=kind,
        meaning=node.need("meaning").text(),
        measured_by=tuple(item.text() for item in measured.sequence())
        if isinstance(measured.value, list)
        else (measured.text(),),
        when=own.text() if own else when,
        since=node.need("since").text(),
        unit=unit.text() if unit else "",
        choices=tuple(item.text() for item in choices.sequence()) if choices else (),
    )


def _pattern(name: str, node: Node, when: str) -> Pattern:
    keys = node.get("keys")
    return Pattern(
        name=name,
        fact=_fact(name, node, when, ("proven-by", "keys")),
        proven_by=_one_of(node.need("proven-by"), PROOFS),
        keys={key: _one_of(item, TYPES) for key, item in (keys.mapping() if keys else {}).items()},
    )


def _one_of(node: Node, known: tuple[str, ...]) -> str:
    word = node.text()
    if word not in known:
        raise node.fail(f"`{word}` is not one of {', '.join(known)}")
    return word
