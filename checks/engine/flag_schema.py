"""Load the flag schema of one engine release: its options, their names and the values they take.

The data is in `knowledge/engines/sglang/<release>.json`, which `tools/extract_engines.py` makes from the release's own
source. `flag_history` has the names in other releases; `checks.before` checks the flags of a launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct, convert, field, json
from msgspec.structs import force_setattr

from checks import KNOWLEDGE
from checks.engine.flag_history import canonical_elsewhere, spellings_of
from checks.engine.releases import available, nearest

__all__ = ["Environment", "Flag", "FlagSchema", "Found", "available", "from_document", "load", "nearest"]

FOLDER = KNOWLEDGE / "engines/sglang"
Kind = Literal["exact", "abbreviation", "ambiguous", "unknown"]


class Flag(Struct, frozen=True, kw_only=True):
    """One option, in the form that `checks.engine.source` extracts. Names are in the order of the source."""

    spelled: tuple[str, ...] = field(name="flags")  # names as in the source, with dashes
    dest: str
    source: str  # file:line inside the package
    type: str | None = "str"  # name of the Python function that parses one word
    nargs: str | int | None = None  # as in argparse: None one word, 0 none, "+" one or more, "*" any, "?" at most one
    choices: tuple[Any, ...] | None = None
    default: Any = None
    const: Any = None  # the value that a retired switch stores, e.g. `disabled`
    required: bool = False
    action: str = "store"
    hidden: bool = False
    deprecated: bool = False
    replacement: str | None = None  # in the source's words
    refuses: str | None = None  # the error message with which a retired option ends the launch
    help: str = ""
    names: tuple[str, ...] = ()  # without dashes

    def __post_init__(self) -> None:
        force_setattr(self, "names", tuple(name.removeprefix("--") for name in self.spelled))

    @property
    def is_switch(self) -> bool:
        """Whether the option takes no value."""
        return self.nargs == 0

    @property
    def negatable(self) -> bool:
        """Whether the option has a `no-…` form."""
        return self.action == "BooleanOptionalAction"


class Found(Struct, frozen=True, kw_only=True):
    """How argparse resolves an option name. `name` is the full name, or the text itself if there is no single match."""

    kind: Kind
    name: str
    flag: Flag | None = None
    candidates: tuple[str, ...] = ()


class Environment(Struct, frozen=True, kw_only=True):
    """The environment variables that a release reads."""

    types: Mapping[str, str]  # declared ones: name → EnvBool, EnvInt, EnvStr, …
    mentioned: frozenset[str]  # read somewhere without a declaration
    deprecated: Mapping[str, Mapping[str, str | None]]  # name → {replacement, note}
    sgl_prefix_rewritten: bool  # the engine reads SGL_X as SGLANG_X, with a warning

    def knows(self, name: str) -> bool:
        """Whether any code in this release reads the variable."""
        if name in self.types or name in self.mentioned or name in self.deprecated:
            return True
        return self.sgl_prefix_rewritten and name.startswith("SGL_") and self.knows("SGLANG_" + name[4:])


class FlagSchema(Struct, frozen=True, kw_only=True):
    """The options and variables of release `version`. `exact` is False if `asked` is another version, see `note`."""

    version: str
    asked: str
    exact: bool
    note: str
    flags: tuple[Flag, ...]
    by_name: Mapping[str, Flag]
    environment: Environment
    requirements: tuple[str, ...]  # PEP 508
    architectures: frozenset[str]

    def find(self, name: str) -> Found:
        """Return the option that argparse resolves `name` to: an exact match, else the only option with this prefix."""
        name = name.removeprefix("--")
        if name in self.by_name:
            return Found(kind="exact", name=name, flag=self.by_name[name])
        fits = tuple(n for n in self.by_name if n.startswith(name))
        if len(fits) == 1:
            return Found(kind="abbreviation", name=fits[0], flag=self.by_name[fits[0]])
        return Found(kind="ambiguous" if fits else "unknown", name=name, candidates=fits)

    def canonical(self, name: str) -> str | None:
        """Return the newest name of the option that is called `name` in any release; None for an unknown name."""
        name = name.removeprefix("--")
        newest = canonical_elsewhere(name)
        if newest is not None:
            return newest
        match = self.find(name)
        if match.flag is None:
            return None
        return canonical_elsewhere(match.name) or own_name(match.flag)

    def spell(self, name: str) -> str | None:
        """Return the option's name in this release; None if the release has no such option.

        A name that the release accepts without a deprecation does not change.
        """
        name = name.removeprefix("--")
        if name in self.by_name and not self.by_name[name].deprecated:
            return name
        canonical = self.canonical(name)
        if canonical is None:
            return None
        names = [n for n in spellings_of(canonical) if n in self.by_name and not n.startswith("no-")]
        names.sort(key=lambda n: (self.by_name[n].deprecated, n != canonical))
        if names:
            return names[0]
        return canonical if canonical in self.by_name else None

    def suggestions(self, name: str) -> tuple[str, ...]:
        """Return at most three similar names, the most similar first."""
        plain = name.removeprefix("--").replace("_", "-")
        if plain in self.by_name:
            return (plain,)
        import difflib

        close = difflib.get_close_matches(plain, self.by_name, n=3, cutoff=0.75)
        return tuple(dict.fromkeys(close))


def own_name(flag: Flag) -> str:
    """Return the name that corresponds to `dest` if the flag has it, else its first name."""
    derived = flag.dest.replace("_", "-")
    return derived if derived in flag.names else flag.names[0]


@lru_cache(maxsize=64)
def load(version: str = "") -> FlagSchema:
    """Return the schema of an engine version; of the nearest release for an unknown one, of the newest for ""."""
    release, note = nearest(version)
    document = (FOLDER / f"{release}.json").read_bytes()
    return from_document(json.decode(document), asked=version or release, note=note)


def from_document(document: Mapping[str, Any], *, asked: str = "", note: str = "") -> FlagSchema:
    """Return the schema in a document that `checks.engine.source` extracted, here or on a host.

    Raises KeyError or ValueError if the document is not a schema.
    """
    flags = convert(document["arguments"], tuple[Flag, ...])
    version = str(document.get("version") or asked or "unknown")
    return FlagSchema(
        version=version,
        asked=asked or version,
        exact=not note,
        note=note,
        flags=flags,
        by_name={name: flag for flag in flags for name in flag.names},
        environment=_environment(document["environment"]),
        requirements=tuple(document.get("requirements", ())),
        architectures=frozenset(document.get("architectures", ())),
    )


def _environment(document: Mapping[str, Any]) -> Environment:
    """Return the variables. Shipped files map type → names; a host's document maps name → type."""
    types: dict[str, str] = {}
    for key, value in document["declared"].items():
        types.update(dict.fromkeys(value, key) if isinstance(value, list) else {key: value})
    return Environment(
        types=types,
        mentioned=frozenset(document["mentioned"]),
        deprecated=document["deprecated"],
        sgl_prefix_rewritten=document["sgl_prefix_rewritten"],
    )
