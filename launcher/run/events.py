"""What happens during a run, as records: written to events.jsonl, shown by the command line, read by tests."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, to_builtins


class Activity(StrEnum):
    """What the processes of a run do, as far as a sample of them shows."""

    COMPILING = "compiling"  # a compiler is among them
    STOPPED = "stopped"  # one of them was stopped by a signal
    OTHER = "other"
    UNKNOWN = "unknown"  # nobody looked yet, or an older launcher wrote the event


class Started(Struct, frozen=True, kw_only=True):
    """The engine's process runs on the host."""

    at: float  # seconds since the start, here and below
    pid: int


class PhaseEntered(Struct, frozen=True, kw_only=True):
    """The log shows that a phase began."""

    at: float
    phase: str
    title: str


class Progress(Struct, frozen=True, kw_only=True):
    """Something moved inside a phase. `fraction` is 0..1 where the engine says how much there is."""

    at: float
    phase: str
    text: str
    fraction: float | None = None


class Stalled(Struct, frozen=True, kw_only=True):
    """Nothing moved for longer than the phase may be silent: no log line, no CPU time, no reading."""

    at: float
    phase: str
    silent: float  # seconds
    last_line: str
    doing: str  # what the processes are doing, in words
    activity: Activity = Activity.UNKNOWN


class Overdue(Struct, frozen=True, kw_only=True):
    """A phase takes longer than its deadline, though something still moves."""

    at: float
    phase: str
    limit: float
    doing: str
    activity: Activity = Activity.UNKNOWN


class Resumed(Struct, frozen=True, kw_only=True):
    """After a stall something moves again."""

    at: float
    phase: str


class Answering(Struct, frozen=True, kw_only=True):
    """HTTP status of /health changed: refused (0) → 503 → 200 is the normal order."""

    at: float
    status: int


class Ready(Struct, frozen=True, kw_only=True):
    """The launched process itself answers on its port and names this run."""

    at: float
    evidence: tuple[str, ...]


class Impostor(Struct, frozen=True, kw_only=True):
    """The port answers, but not this run."""

    at: float
    reason: str


class LinkLost(Struct, frozen=True, kw_only=True):
    """The connection broke; the run goes on without us."""

    at: float
    reason: str


class Exited(Struct, frozen=True, kw_only=True):
    """The engine's process is gone: `exited` with a code, or `vanished`."""

    at: float
    state: str
    code: int | None


Event = (
    Started | PhaseEntered | Progress | Stalled | Overdue | Resumed | Answering | Ready | Impostor | LinkLost | Exited
)  # fmt: skip


def to_json(event: Event) -> dict[str, Any]:
    """One line of events.jsonl."""
    return {"event": type(event).__name__, **to_builtins(event)}


def from_json(data: Mapping[str, Any]) -> Event | None:
    """The event of such a line; None for kinds that a newer launcher wrote."""
    kinds: dict[str, type[Any]] = {kind.__name__: kind for kind in Event.__args__}
    kind = kinds.get(str(data.get("event")))
    if kind is None:
        return None
    fields = {name: value for name, value in data.items() if name in kind.__struct_fields__}
    event: Event = kind(**fields)
    return event
