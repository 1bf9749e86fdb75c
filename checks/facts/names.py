"""The registry of facts: the meaning of each name, the type of its value, and the module that measures it.

Read from `knowledge/facts/*.yaml`, one file per namespace. Only lint, the reference page and `--trace` load it; checks
and diagnoses do not. `launch_evidence` and `derived` create facts, `checks.catalog.conditions` compares them.
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
"""Takes the place of a module when a profile, a facts file or a caller states the fact."""
NUMBERS = ("int", "float", "human_readable_int")
STATED = ("flag", "env", "engine", "observed")
"""Namespaces whose facts a launch or a caller states. All other facts need a module that measures them."""


class Fact(Struct, frozen=True, kw_only=True):
    """One name that conditions and templates may use."""

    name: str
    type: str
    meaning: str
    measured_by: tuple[str, ...]  # modules, the first one first; or `given`
    when: str  # the condition under which the fact is known
    since: str
    unit: str = ""
    choices: tuple[str, ...] = ()

    @property
    def measured(self) -> bool:
        """Whether a module produces the fact, or a launch itself states it."""
        return self.measured_by != (GIVEN,) or self.name.partition(".")[0] in STATED

    def accepts(self, value: object) -> bool:
        """Return whether a value has this type. Null (known to be absent) has any type; numbers may be text."""
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
    """One record for an open set of names, such as `flag.<option>`."""

    name: str
    fact: Fact  # the record of every such name, except for the name itself
    proven_by: str
    keys: Mapping[str, str]  # key → type: all allowed names, or names in addition to those that releases require


class Namespace(Struct, frozen=True, kw_only=True):
    """The facts whose names share the part before the first dot."""

    name: str
    meaning: str
    closed: bool  # True: a missing fact is absent; False: it is unknown
    when: str  # the condition under which its facts are known, unless a record states another
    facts: Mapping[str, Fact]  # by full name
    patterns: tuple[Pattern, ...]


@cache
def namespaces() -> Mapping[str, Namespace]:
    """Return the whole registry by namespace. Raises YamlError for the first malformed record."""
    spaces = (_namespace(path.stem, read(path)) for path in sorted(FOLDER.glob("*.yaml")))
    return {space.name: space for space in spaces}


@cache
def lookup(name: str) -> Fact | None:
    """Return the record of a fact, or one from a pattern that proves the name; None when the name is unknown."""
    space = namespaces().get(name.partition(".")[0])
    if space is None:
        return None
    known = space.facts.get(name)
    if known is not None:
        return known
    return next((fact for pattern in space.patterns if (fact := _proven(pattern, name))), None)


def known_names() -> Iterator[str]:
    """Yield every registered name and every proven flag, variable and package, as suggestions for a wrong name."""
    for space in namespaces().values():
        yield from space.facts
        for pattern in space.patterns:
            yield from (_full(pattern, key) for key in pattern.keys)
    yield from (f"flag.{name}" for name in known_options())
    yield from (f"env.{name}" for name in known_variables())
    yield from (f"package.{name}" for name in _required())


def flag_choices(option: str, engine: EngineRange) -> frozenset[str]:
    """Return the choices of an option over the releases of a range; empty when one release accepts any word."""
    words: set[str] = set()
    for flag in _flags(option, engine):
        if not flag.choices:
            return frozenset()
        words |= set(map(str, flag.choices))
    return frozenset(words)


def flag_types(option: str) -> frozenset[str]:
    """Return the types (`flag`, `number`, `text`) of an option in the releases that have it."""
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
            return _named(fact, name)  # lint checks that a pattern of the entry has the group


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


def _fact(name: str, node: Node, usual_when: str, further_keys: tuple[str, ...] = ()) -> Fact:
    node.mapping((*_KEYS, *further_keys))
    measured, choices, unit, when = (node.get(key) for key in ("measured-by", "choices", "unit", "when"))
    if measured is None:
        raise node.fail("`measured-by` is missing")
    kind = _one_of(node.need("type"), TYPES)
    if (kind == "choice") is not (choices is not None):
        raise node.fail("`choices` is required for the type `choice` and not allowed for any other type")
    return Fact(
        name=name,
        type=kind,
        meaning=node.need("meaning").text(),
        measured_by=tuple(item.text() for item in measured.sequence())
        if isinstance(measured.value, list)
        else (measured.text(),),
        when=when.text() if when else usual_when,
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
