"""What happens during a run, as records: written to events.jsonl, shown by the command line, read by tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The engine's process runs on the host."""

    at: float  # seconds since the start, here and below
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEntered:
    """The log shows that a phase began."""

    at: float
    phase: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Something moved inside a phase. `fraction` is 0..1 where the engine says how much there is."""

    at: float
    phase: str
    text: str
    fraction: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """Nothing moved for longer than the phase may be silent: no log line, no CPU time, no reading."""

    at: float
    phase: str
    silent: float  # seconds
    last_line: str
    doing: str  # what the processes are doing


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """A phase takes longer than its deadline, though something still moves."""

    at: float
    phase: str
    limit: float
    doing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """After a stall something moves again."""

    at: float
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """HTTP status of /health changed: refused (0) → 503 → 200 is the normal order."""

    at: float
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The launched process itself answers on its port and names this run."""

    at: float
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Impostor:
    """The port answers, but not this run."""

    at: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLost:
    """The connection broke; the run goes on without us."""

    at: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """The engine's process is gone: `exited` with a code, or `vanished`."""

    at: float
    state: str
    code: int | None


Event = (
    Started | PhaseEntered | Progress | Stalled | Overdue | Resumed | Answering | Ready | Impostor | LinkLost | Exited
)  # fmt: skip


def to_json(event: Event) -> dict[str, Any]:
    """One line of events.jsonl."""
    return {"event": type(event).__name__, **asdict(event)}


def from_json(data: Mapping[str, Any]) -> Event | None:
    """The event of such a line; None for kinds that a newer launcher wrote."""
    kinds: dict[str, type[Any]] = {kind.__name__: kind for kind in Event.__args__}
    kind = kinds.get(str(data.get("event")))
    if kind is None:
        return None
    fields = {name: value for name, value in data.items() if name in kind.__dataclass_fields__}
    event: Event = kind(**fields)
    return event
