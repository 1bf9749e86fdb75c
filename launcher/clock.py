"""Time, handed in so that flows can be tested without waiting."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What flows know of time."""

    def now(self) -> datetime:
        """Wall time in UTC."""

    def monotonic(self) -> float:
        """Seconds that never run backwards."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The real one."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
