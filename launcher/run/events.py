"""The events of a run as records: written to events.jsonl, shown by the command line, read by tests.

`run_wording` turns them into the sentences of a run's state and diagnosis; no decision depends on a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, to_builtins


class Activity(StrEnum):
    """What the processes of a run do, according to a sample of them."""

    COMPILING = "compiling"  # a compiler runs
    STOPPED = "stopped"  # a signal has stopped a process
    OTHER = "other"
    UNKNOWN = "unknown"  # no sample yet, or the event was written by an older launcher


class Started(Struct, frozen=True, kw_only=True):
    """The engine's process was started on the host."""

    at: float  # seconds since the start of the engine; the same in all events below
    pid: int


class PhaseEntered(Struct, frozen=True, kw_only=True):
    """The log shows that a phase began."""

    at: float
    phase: str
    title: str


class Progress(Struct, frozen=True, kw_only=True):
    """A phase made progress. `fraction` is 0..1 where the engine logs one."""

    at: float
    phase: str
    text: str
    fraction: float | None = None


class Stalled(Struct, frozen=True, kw_only=True):
    """No progress for longer than the phase may be silent: no log line, no CPU time, no bytes read."""

    at: float
    phase: str
    silent: float  # seconds
    last_line: str
    doing: str  # what the processes are doing, in words
    activity: Activity = Activity.UNKNOWN


class Overdue(Struct, frozen=True, kw_only=True):
    """A phase takes longer than its deadline, although it still makes progress."""

    at: float
    phase: str
    limit: float
    doing: str
    activity: Activity = Activity.UNKNOWN


class Resumed(Struct, frozen=True, kw_only=True):
    """A stalled run makes progress again."""

    at: float
    phase: str


class Answering(Struct, frozen=True, kw_only=True):
    """The HTTP status of /health changed; the normal order is refused (0) → 503 → 200."""

    at: float
    status: int


class Ready(Struct, frozen=True, kw_only=True):
    """The launched process itself answers on its port and reports the server args of this run."""

    at: float
    evidence: tuple[str, ...]


class Impostor(Struct, frozen=True, kw_only=True):
    """Another server than this run answers on the port."""

    at: float
    reason: str


class LinkLost(Struct, frozen=True, kw_only=True):
    """The connection was lost; the run continues on the host."""

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
    """Return an event as one line of events.jsonl."""
    return {"event": type(event).__name__, **to_builtins(event)}


def from_json(data: Mapping[str, Any]) -> Event | None:
    """Return the event of such a line; None for a kind that only a newer launcher knows."""
    kinds: dict[str, type[Any]] = {kind.__name__: kind for kind in Event.__args__}
    kind = kinds.get(str(data.get("event")))
    if kind is None:
        return None
    fields = {name: value for name, value in data.items() if name in kind.__struct_fields__}
    event: Event = kind(**fields)
    return event
