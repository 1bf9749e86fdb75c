"""One probe as its knowledge file describes it. Loading is in `probes`, the scripts are in `probe_basic` and others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

SUITES = ("smoke", "standard", "full", "soak")  # soak: one round of what is asked again and again after ready
LEVELS = ("ready", "correct", "good-enough")


class Probe(Struct, frozen=True, kw_only=True):
    """What is asked of a server, as data. `params` belong to the kind."""

    id: str
    title: str
    why: str
    kind: str
    level: str  # what it proves: ready, correct or good-enough
    suites: tuple[str, ...]
    alone: bool = False  # measures something that other requests would disturb
    params: Mapping[str, Any] = field(default_factory=dict)
    clears: tuple[str, ...] = ()  # open warnings that a pass closes

    def text(self, name: str, default: str | None = None) -> str:
        """A text parameter; KeyError when it is missing and has no default."""
        return str(self.params[name] if default is None else self.params.get(name, default))

    def number(self, name: str, default: float | None = None) -> float:
        """A number parameter; KeyError when it is missing and has no default."""
        return float(self.params[name] if default is None else self.params.get(name, default))

    def count(self, name: str, default: int | None = None) -> int:
        """A whole number parameter."""
        return int(self.number(name, default))
