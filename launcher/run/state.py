"""The states of a run, and which of them are active. Where a run is on disk is in `store`."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """The state of a run. `lost` means that it ended, and how it ended is unknown."""

    PLANNED = "planned"
    STARTING = "starting"
    LOADING = "loading"
    READY = "ready"
    VALIDATED = "validated"
    REFUSED = "refused"
    CRASHED = "crashed"
    STALLED = "stalled"
    TIMED_OUT = "timed-out"
    STOPPED = "stopped"
    LOST = "lost"


ACTIVE = frozenset(
    {State.PLANNED, State.STARTING, State.LOADING, State.READY, State.VALIDATED, State.STALLED, State.TIMED_OUT}
)
