"""One probe as its knowledge file describes it. `registry` loads the files; `basic`, `deep` ... hold the scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

SUITES = ("smoke", "standard", "full", "soak")  # soak: one round of the probes that are repeated after a validation
LEVELS = ("ready", "correct", "good-enough")


class Probe(Struct, frozen=True, kw_only=True):
    """One probe as data; the script of its `kind` reads the `params`."""

    id: str
    title: str
    why: str
    kind: str
    level: str  # what it proves: ready, correct or good-enough
    suites: tuple[str, ...]
    alone: bool = False  # runs exclusively, because other requests would disturb its measurement
    params: Mapping[str, Any] = field(default_factory=dict)
    clears: tuple[str, ...] = ()  # unresolved warnings that a pass clears

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text parameter. Raises KeyError when it is missing and has no default."""
        return str(self.params[name] if default is None else self.params.get(name, default))

    def number(self, name: str, default: float | None = None) -> float:
        """Return a number parameter. Raises KeyError when it is missing and has no default."""
        return float(self.params[name] if default is None else self.params.get(name, default))

    def count(self, name: str, default: int | None = None) -> int:
        """Return an integer parameter. Raises KeyError when it is missing and has no default."""
        return int(self.number(name, default))
