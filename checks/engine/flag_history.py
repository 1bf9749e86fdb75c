"""The life of every flag and environment variable over the releases, and what took its place.

`knowledge/engines/history.json` is generated from the schemas and holds the spans; `renames.yaml` is written by
hand and says what an old option is called now. The options of one release are in `engines`.
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
    """First and last release that has a name; `gone` is the first one without it, None when it is still there."""

    first: str
    last: str
    gone: str | None


class Successor(Struct, frozen=True, kw_only=True):
    """What to give in place of an old option."""

    old: str
    kind: Literal["renamed", "replaced", "dropped"]
    new: str | None = None  # of a rename: same meaning, same values
    set: Mapping[str, FlagValue] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)  # old value → new value
    deprecated: str | None = None
    removed: str | None = None
    since: str | None = None  # the first release in which all of it exists
    until: str | None = None  # the first release in which it does not any more
    note: str = ""


def releases() -> tuple[str, ...]:
    """Releases with a schema, oldest first."""
    return tuple(_history()["releases"])


def flag_span(name: str) -> Span | None:
    """The releases that have this very spelling of an option; None: no release has it."""
    return _span(_history()["flags"].get(name))


def variable_span(name: str) -> Span | None:
    """The releases that read this environment variable; None: no release does."""
    return _span(_history()["variables"].get(name))


def canonical_elsewhere(name: str) -> str | None:
    """The newest name of an option that any release knows under `name`."""
    history = _history()
    return history["canonical"].get(name) or (name if name in history["flags"] else None)


def known_options() -> tuple[str, ...]:
    """The newest name of every option of any release."""
    return tuple(name for name in _history()["flags"] if canonical_elsewhere(name) == name)


def known_variables() -> tuple[str, ...]:
    """Every environment variable that some release reads."""
    return tuple(_history()["variables"])


def spellings_of(canonical: str) -> tuple[str, ...]:
    """Every name an option has had, newest first."""
    return _spellings().get(canonical, (canonical,))


def successor(name: str) -> Successor | None:
    """What the hand-written table says of an old option."""
    return successors().get(name)


@lru_cache(maxsize=1)
def successors() -> Mapping[str, Successor]:
    """The hand-written table, by old name. Raises YamlError."""
    from checks.catalog.yaml_reader import read  # 30 ms that only a retired flag needs

    document = read(RENAMES).mapping(("renames", "replaced", "dropped"))
    found: dict[str, Successor] = {}
    for group, kind in (("renames", "renamed"), ("replaced", "replaced"), ("dropped", "dropped")):
        for node in document[group].sequence():
            entry = _successor(node, kind)  # type: ignore[arg-type]
            found[entry.old] = entry
    return found


def _successor(node: Node, kind: Literal["renamed", "replaced", "dropped"]) -> Successor:
    given = {key: _plain(item) for key, item in node.mapping(ENTRY_KEYS).items()}
    return Successor(kind=kind, **{**given, "unset": tuple(given.get("unset", ()))})


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
    found: Mapping[str, Any] = json.decode(HISTORY.read_bytes())
    return found


@lru_cache(maxsize=1)
def _spellings() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    order = {release: index for index, release in enumerate(releases())}
    spans = _history()["flags"]
    for name in sorted(spans, key=lambda n: -order[spans[n].split("-")[1]]):
        found.setdefault(canonical_elsewhere(name) or name, []).append(name)
    return {name: tuple(names) for name, names in found.items()}
