"""A clock for tests of flows, so that no test waits for wall time."""

from __future__ import annotations

from datetime import UTC, datetime


class FakeClock:
    """A clock that advances only when `sleep` is called."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._start.timestamp() + self._elapsed, UTC)

    def monotonic(self) -> float:
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        self._elapsed += seconds
