"""Time as an argument, so that flows can be tested without waiting.

Only this module and the programs sent to the host import `time`; tests pass a clock that advances when it sleeps.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The time functions that flows may use."""

    def now(self) -> datetime:
        """Return the wall time in UTC."""

    def monotonic(self) -> float:
        """Return seconds from a clock that never runs backwards."""

    def sleep(self, seconds: float) -> None:
        """Wait for that many seconds."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
