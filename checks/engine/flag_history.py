"""Look up the releases that have a flag or an environment variable, and the replacement of an old option.

`knowledge/engines/history.json` contains the spans and is generated from the schemas; `renames.yaml` lists the
replacements of old options and is written by hand. `flag_schema` has the options of one release.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field, json

from checks import KNOWLEDGE
from checks.vocabulary import FlagValue

if TYPE_CHECKING:
    from checks.catalog.yaml_reader import Node

HISTORY = KNOWLEDGE / "engines/history.json"
RENAMES = KNOWLEDGE / "engines/renames.yaml"
ENTRY_KEYS = ("old", "new", "deprecated", "removed", "since", "until", "set", "unset", "env", "values", "note")


class Span(Struct, frozen=True, kw_only=True):
    """The first and last release that has a name; `gone` is the first release without it, None if none lacks it."""

    first: str
    last: str
    gone: str | None


class Successor(Struct, frozen=True, kw_only=True):
    """The replacement of an old option."""

    old: str
    kind: Literal["renamed", "replaced", "dropped"]
    new: str | None = None  # only for a rename: same meaning, same values
    set: Mapping[str, FlagValue] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)  # old value → new value
    deprecated: str | None = None
    removed: str | None = None
    since: str | None = None  # the first release that has the whole replacement
    until: str | None = None  # the first release that no longer has it
    note: str = ""


def releases() -> tuple[str, ...]:
    """Return the releases with a schema, oldest first."""
    return tuple(_history()["releases"])


def flag_span(name: str) -> Span | None:
    """Return the span of releases that have an option under exactly this name; None if none has."""
    return _span(_history()["flags"].get(name))


def variable_span(name: str) -> Span | None:
    """Return the span of releases that read this environment variable; None if none does."""
    return _span(_history()["variables"].get(name))


def canonical_elsewhere(name: str) -> str | None:
    """Return the newest name of an option that is called `name` in any release; None for an unknown name."""
    history = _history()
    return history["canonical"].get(name) or (name if name in history["flags"] else None)


def known_options() -> tuple[str, ...]:
    """Return the newest name of every option of any release."""
    return tuple(name for name in _history()["flags"] if canonical_elsewhere(name) == name)


def known_variables() -> tuple[str, ...]:
    """Return every environment variable that any release reads."""
    return tuple(_history()["variables"])


def spellings_of(canonical: str) -> tuple[str, ...]:
    """Return every name that an option has had, newest first."""
    return _spellings().get(canonical, (canonical,))


def successor(name: str) -> Successor | None:
    """Return the hand-written replacement of an old option; None if the table does not list it. Raises YamlError."""
    return successors().get(name)


@lru_cache(maxsize=1)
def successors() -> Mapping[str, Successor]:
    """Return the hand-written table by old name. Raises YamlError."""
    from checks.catalog.yaml_reader import read  # takes 30 ms; only a retired flag needs it

    document = read(RENAMES).mapping(("renames", "replaced", "dropped"))
    entries: dict[str, Successor] = {}
    for group, kind in (("renames", "renamed"), ("replaced", "replaced"), ("dropped", "dropped")):
        for node in document[group].sequence():
            entry = _successor(node, kind)  # type: ignore[arg-type]
            entries[entry.old] = entry
    return entries


def _successor(node: Node, kind: Literal["renamed", "replaced", "dropped"]) -> Successor:
    fields = {key: _plain(item) for key, item in node.mapping(ENTRY_KEYS).items()}
    return Successor(kind=kind, **{**fields, "unset": tuple(fields.get("unset", ()))})


def _plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: _plain(item) for key, item in node.value.items()}
    if isinstance(node.value, list):
        return [_plain(item) for item in node.value]
    return node.value if node.value is None or isinstance(node.value, bool) else node.raw or str(node.value)


def _span(text: str | None) -> Span | None:
    if text is None:
        return None
    known = releases()
    first, last = text.split("-")
    after = known.index(last) + 1
    return Span(first=first, last=last, gone=known[after] if after < len(known) else None)


@lru_cache(maxsize=1)
def _history() -> Mapping[str, Any]:
    history: Mapping[str, Any] = json.decode(HISTORY.read_bytes())
    return history


@lru_cache(maxsize=1)
def _spellings() -> Mapping[str, tuple[str, ...]]:
    names_by_canonical: dict[str, list[str]] = {}
    order = {release: index for index, release in enumerate(releases())}
    spans = _history()["flags"]
    for name in sorted(spans, key=lambda n: -order[spans[n].split("-")[1]]):
        names_by_canonical.setdefault(canonical_elsewhere(name) or name, []).append(name)
    return {name: tuple(names) for name, names in names_by_canonical.items()}
