"""The vocabulary of the gate: a remark on a place in a file, a profile that a change affects, the report of one gate.

Plain frozen records. How they come about is in `static`, `semantic` and the flows; how they are shown in `outputs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from checks.vocabulary import Severity


class Status(StrEnum):
    """What a remark means for the verdict. Only the first two stand in the way."""

    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    ACCEPTED = "accepted"  # the profile accepts it, and the policy lets it
    KNOWN = "known"  # stands on the base as well
    EXPECTED = "expected"  # of a profile that is kept because it is refused
    NOTE = "note"


class Gate(StrEnum):
    """The verdict."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class Place(Struct, frozen=True, kw_only=True):
    """A position in a file of the repository: path relative to its top, line and column from 1."""

    path: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


class Remark(Struct, frozen=True, kw_only=True):
    """One thing the gate has to say, on the line it is about."""

    rule: str  # id of the finding, or of a rule of the gate itself
    status: Status
    severity: Severity
    message: str
    place: Place
    profile: str = ""
    subject: str = ""
    targets: tuple[str, ...] = ()  # releases and hosts it holds for
    why: str = ""
    remedies: tuple[str, ...] = ()


class Difference(Struct, frozen=True, kw_only=True):
    """One thing that means something else now. `kind` is flag, env, model, engine, accept, expect or hardware."""

    kind: str
    name: str
    before: str | None  # None: it was not there
    after: str | None
    place: Place | None = None


class Effect(Struct, frozen=True, kw_only=True):
    """How the words of the command line change in some releases."""

    releases: tuple[str, ...]
    removed: tuple[str, ...]
    added: tuple[str, ...]


class Affected(Struct, frozen=True, kw_only=True):
    """A profile and why the change reaches it. `change` is new, deleted, moved, changed, inputs or policy."""

    name: str
    change: str
    path: str
    reasons: tuple[str, ...]
    differences: tuple[Difference, ...] = ()
    effects: tuple[Effect, ...] = ()
    abstract: bool = False


class Comparison(Struct, frozen=True, kw_only=True):
    """One figure of the new profile beside the old one's, measured on a host."""

    name: str
    verdict: str  # better, same, worse, inconclusive
    message: str
    figures: Mapping[str, float] = field(default_factory=dict)


class Trial(Struct, frozen=True, kw_only=True):
    """Old and new profile, launched in turn on a host."""

    profile: str
    host: str
    verdict: str  # better, same, worse, inconclusive
    message: str
    comparisons: tuple[Comparison, ...] = ()
    runs: tuple[str, ...] = ()
    gpu_minutes: float = 0.0


class Replayed(Struct, frozen=True, kw_only=True):
    """A recorded run judged again. `recorded` and `now` map refused, cause, healthy, outcome, level to words."""

    run: str
    profile: str
    path: str
    recorded: Mapping[str, Any]
    now: Mapping[str, Any]
    flipped: tuple[str, ...] = ()  # names that differ and decide
    notes: tuple[str, ...] = ()


class Report(Struct, frozen=True, kw_only=True):
    """Everything one gate found."""

    tier: str
    base: str  # commit, empty when there is none
    base_note: str
    affected: tuple[Affected, ...]
    remarks: tuple[Remark, ...]
    files: tuple[str, ...] = ()  # changed files that the gate looked at
    replayed: tuple[Replayed, ...] = ()
    trials: tuple[Trial, ...] = ()
    checked: int = 0  # profiles that were judged
    targets: int = 0  # launches that were judged: profile × release or host
    seconds: float = 0.0

    @property
    def verdict(self) -> Gate:
        """The worst of all remarks."""
        found = {remark.status for remark in self.remarks}
        if Status.FAIL in found:
            return Gate.FAIL
        return Gate.INCONCLUSIVE if Status.INCONCLUSIVE in found else Gate.PASS

    def of(self, *statuses: Status) -> tuple[Remark, ...]:
        """Remarks of these statuses."""
        return tuple(remark for remark in self.remarks if remark.status in statuses)
