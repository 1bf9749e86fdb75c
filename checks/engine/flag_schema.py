"""The flag schema of one engine release: which options it has, under which names, taking which values.

Read from `knowledge/engines/sglang/<release>.json`, which `tools/extract_engines.py` made out of the release's own
source. What other releases call a flag is in `engine_history`; judging a set of flags is `flag_check`.
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
    """One option, as `schema_source` writes it down. Names are in the order of the source."""

    spelled: tuple[str, ...] = field(name="flags")  # as in the source, with dashes
    dest: str
    source: str  # file:line inside the package
    type: str | None = "str"  # name of the Python function that reads one word
    nargs: str | int | None = None  # argparse: None one word, 0 none, "+" some, "*" any, "?" at most one
    choices: tuple[Any, ...] | None = None
    default: Any = None
    const: Any = None  # what a retired switch stands for, e.g. `disabled`
    required: bool = False
    action: str = "store"
    hidden: bool = False
    deprecated: bool = False
    replacement: str | None = None  # as the source words it
    refuses: str | None = None  # the message with which a retired option ends the launch
    help: str = ""
    names: tuple[str, ...] = ()  # without dashes

    def __post_init__(self) -> None:
        force_setattr(self, "names", tuple(name.removeprefix("--") for name in self.spelled))

    @property
    def is_switch(self) -> bool:
        """It takes no value."""
        return self.nargs == 0

    @property
    def negatable(self) -> bool:
        """There is a `no-…` form."""
        return self.action == "BooleanOptionalAction"


class Found(Struct, frozen=True, kw_only=True):
    """What argparse makes of an option name. `name` is the full name, or the text itself when there is none."""

    kind: Kind
    name: str
    flag: Flag | None = None
    candidates: tuple[str, ...] = ()


class Environment(Struct, frozen=True, kw_only=True):
    """Environment variables a release knows."""

    types: Mapping[str, str]  # declared ones: name → EnvBool, EnvInt, EnvStr, …
    mentioned: frozenset[str]  # read somewhere without a declaration
    deprecated: Mapping[str, Mapping[str, str | None]]  # name → {replacement, note}
    sgl_prefix_rewritten: bool  # SGL_X is taken as SGLANG_X, with a warning

    def knows(self, name: str) -> bool:
        """Does anything in this release read it?"""
        if name in self.types or name in self.mentioned or name in self.deprecated:
            return True
        return self.sgl_prefix_rewritten and name.startswith("SGL_") and self.knows("SGLANG_" + name[4:])


class FlagSchema(Struct, frozen=True, kw_only=True):
    """Options and variables of `version`. `exact` False: the engine asked for is not that release, see `note`."""

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
        """The option that argparse takes `name` for: itself, else the only one that begins with it."""
        name = name.removeprefix("--")
        if name in self.by_name:
            return Found(kind="exact", name=name, flag=self.by_name[name])
        fits = tuple(n for n in self.by_name if n.startswith(name))
        if len(fits) == 1:
            return Found(kind="abbreviation", name=fits[0], flag=self.by_name[fits[0]])
        return Found(kind="ambiguous" if fits else "unknown", name=name, candidates=fits)

    def canonical(self, name: str) -> str | None:
        """The newest name of the option that `name` means here or in any release; None: nobody knows it."""
        name = name.removeprefix("--")
        known = canonical_elsewhere(name)
        if known is not None:
            return known
        found = self.find(name)
        if found.flag is None:
            return None
        return canonical_elsewhere(found.name) or own_name(found.flag)

    def spell(self, name: str) -> str | None:
        """The name under which this release has the option; None when it has none of that meaning.

        A name that the release takes without complaint stays as it is.
        """
        name = name.removeprefix("--")
        if name in self.by_name and not self.by_name[name].deprecated:
            return name
        canonical = self.canonical(name)
        if canonical is None:
            return None
        here = [n for n in spellings_of(canonical) if n in self.by_name and not n.startswith("no-")]
        here.sort(key=lambda n: (self.by_name[n].deprecated, n != canonical))
        if here:
            return here[0]
        return canonical if canonical in self.by_name else None

    def suggestions(self, name: str) -> tuple[str, ...]:
        """Names that look alike, the likeliest first."""
        plain = name.removeprefix("--").replace("_", "-")
        if plain in self.by_name:
            return (plain,)
        import difflib

        close = difflib.get_close_matches(plain, self.by_name, n=3, cutoff=0.75)
        return tuple(dict.fromkeys(close))


def own_name(flag: Flag) -> str:
    """The long option derived from `dest` when the flag has it, else its first name."""
    derived = flag.dest.replace("_", "-")
    return derived if derived in flag.names else flag.names[0]


@lru_cache(maxsize=64)
def load(version: str = "") -> FlagSchema:
    """Schema of an engine version, of the nearest release when that one is not known; "" means the newest."""
    release, note = nearest(version)
    document = (FOLDER / f"{release}.json").read_bytes()
    return from_document(json.decode(document), asked=version or release, note=note)


def from_document(document: Mapping[str, Any], *, asked: str = "", note: str = "") -> FlagSchema:
    """Schema out of what `schema_source` extracted, here or on a host. Raises KeyError, or ValueError: it is none."""
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
    """The shipped files group the names by type; a host's document has name → type."""
    types: dict[str, str] = {}
    for key, value in document["declared"].items():
        types.update(dict.fromkeys(value, key) if isinstance(value, list) else {key: value})
    return Environment(
        types=types,
        mentioned=frozenset(document["mentioned"]),
        deprecated=document["deprecated"],
        sgl_prefix_rewritten=document["sgl_prefix_rewritten"],
    )
