"""Options of other engines and launchers, and what SGLang offers instead (`knowledge/engines/foreign.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct, field

from checks import KNOWLEDGE

TABLE = KNOWLEDGE / "engines/foreign.yaml"
KEYS = ("old", "of", "set", "note")


class ForeignOption(Struct, frozen=True, kw_only=True):
    """An option that another program has. Without `set`, it has no counterpart and is left out, see `note`."""

    old: str
    of: str  # the program
    set: Mapping[str, str | bool] = field(default_factory=dict)  # canonical name → value; `<value>` is the old value
    note: str = ""


def foreign(name: str) -> ForeignOption | None:
    """Return what an option of another program corresponds to; None for an unknown name. Raises YamlError."""
    return foreign_options().get(name.removeprefix("--").replace("_", "-"))


@lru_cache(maxsize=1)
def foreign_options() -> Mapping[str, ForeignOption]:
    """Return the table by name. Raises YamlError."""
    from checks.catalog.yaml_reader import read  # takes 30 ms; only an unknown flag needs it

    rows = read(TABLE).mapping(("foreign",))["foreign"].sequence()
    options = {}
    for row in rows:
        keys = row.mapping(KEYS)
        values = keys["set"].mapping().items() if "set" in keys else ()
        name = keys["old"].text()
        options[name] = ForeignOption(
            old=name,
            of=keys["of"].text(),
            set={target: node.value if isinstance(node.value, bool) else node.text() for target, node in values},
            note=row.text_of("note"),
        )
    return options
