"""The records of the gate: a remark on a place in a file, a profile that a change affects, the report of one gate.

Plain frozen records. `static`, `semantic` and the flows make them; `outputs` shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from checks.vocabulary import Severity


class Status(StrEnum):
    """What a remark means for the verdict. Only the first two keep a gate from passing."""

    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    ACCEPTED = "accepted"  # the profile accepts the finding, and the policy allows that
    KNOWN = "known"  # exists on the base already
    EXPECTED = "expected"  # on a profile that the policy expects to be refused
    NOTE = "note"


class Gate(StrEnum):
    """The verdict of a gate."""

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
    """One finding, or one broken rule of the gate, on the line that it is about."""

    rule: str  # id of the finding, or of one of the gate's own rules
    status: Status
    severity: Severity
    message: str
    place: Place
    profile: str = ""
    subject: str = ""
    targets: tuple[str, ...] = ()  # releases and hosts that the remark holds for
    why: str = ""
    remedies: tuple[str, ...] = ()


class Difference(Struct, frozen=True, kw_only=True):
    """One value that changed. `kind` is flag, env, model, engine, accept, expect, hardware or abstract."""

    kind: str
    name: str
    before: str | None  # None: not set before
    after: str | None  # None: no longer set
    place: Place | None = None


class Effect(Struct, frozen=True, kw_only=True):
    """The words that a change removes from and adds to the command line in these releases."""

    releases: tuple[str, ...]
    removed: tuple[str, ...]
    added: tuple[str, ...]


class Affected(Struct, frozen=True, kw_only=True):
    """A profile that the change affects, and why. `change` is new, deleted, moved, changed or inputs."""

    name: str
    change: str
    path: str
    reasons: tuple[str, ...]
    differences: tuple[Difference, ...] = ()
    effects: tuple[Effect, ...] = ()
    abstract: bool = False


class Comparison(Struct, frozen=True, kw_only=True):
    """One figure of the new profile compared with that of the old, measured on a host."""

    name: str
    verdict: str  # better, same, worse, inconclusive
    message: str
    figures: Mapping[str, float] = field(default_factory=dict)


class Trial(Struct, frozen=True, kw_only=True):
    """The trial of a profile on a host: old and new profile, launched alternately."""

    profile: str
    host: str
    verdict: str  # better, same, worse, inconclusive
    message: str
    comparisons: tuple[Comparison, ...] = ()
    runs: tuple[str, ...] = ()
    gpu_minutes: float = 0.0


class Replayed(Struct, frozen=True, kw_only=True):
    """A recorded run judged again. `recorded` and `now` have the keys refused, cause, healthy, outcome and level."""

    run: str
    profile: str
    path: str
    recorded: Mapping[str, Any]
    now: Mapping[str, Any]
    flipped: tuple[str, ...] = ()  # keys that differ and decide the verdict
    notes: tuple[str, ...] = ()


class Report(Struct, frozen=True, kw_only=True):
    """The result of one gate."""

    tier: str
    base: str  # commit; empty without a base
    base_note: str
    affected: tuple[Affected, ...]
    remarks: tuple[Remark, ...]
    files: tuple[str, ...] = ()  # changed files that the gate reads
    replayed: tuple[Replayed, ...] = ()
    trials: tuple[Trial, ...] = ()
    checked: int = 0  # number of profiles that were judged
    targets: int = 0  # number of launches that were judged: profile × release or host
    seconds: float = 0.0

    @property
    def verdict(self) -> Gate:
        """The worst status of all remarks, as a verdict."""
        statuses = {remark.status for remark in self.remarks}
        if Status.FAIL in statuses:
            return Gate.FAIL
        return Gate.INCONCLUSIVE if Status.INCONCLUSIVE in statuses else Gate.PASS

    def of(self, *statuses: Status) -> tuple[Remark, ...]:
        """Return the remarks with one of these statuses."""
        return tuple(remark for remark in self.remarks if remark.status in statuses)
