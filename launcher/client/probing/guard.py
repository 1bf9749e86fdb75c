"""Sending until the engine stands still or is gone: then nothing more is asked or waited for, and why is said.

Requests of a frozen engine are accepted and never answered: each would wait for its whole time-out. What an answer of
/health means is `checks.after.probes.requests.stands_still`; running the probes is `pool`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError

from checks.after.probes.exchange import Answer, Ask
from checks.after.probes.replies import failure
from checks.after.probes.requests import HEALTH, stands_still
from launcher.clock import Clock

LOOK_AFTER = 60.0  # seconds without any answer after which /health is asked
SLICE = 1.0  # seconds of waiting after which that is looked at
PATIENCE = 16  # requests without an answer in time although /health is well: a rank that stands still among others

GONE = ("refused", "unreachable")

Send = Callable[[Ask], Answer]


class Guarded:
    """One `send` for all probes of a validation. Thread-safe."""

    def __init__(self, send: Send, clock: Clock, look_after: float = LOOK_AFTER, patience: int = PATIENCE) -> None:
        self.halted = ""  # why nothing is sent any more
        self.down = False  # it is the engine, which stands still or is gone
        self._answered = False
        self._send, self._clock = send, clock
        self._look_after, self._patience = look_after, patience
        self._late = 0
        self._moved = clock.monotonic()  # when an answer came last, or /health was well
        self._lock = threading.Lock()

    def __call__(self, ask: Ask) -> Answer:
        """Send, unless the engine stands still. A GET ends soon, and what it tells is wanted all the same."""
        if self.halted and ask.payload is not None:
            return failure(ask.path, "halted", f"not asked: {self.halted}", 0.0)
        answer = self._send(ask)
        if ask.path == HEALTH.path:
            self.halted = self.halted or stands_still(answer)
        elif answer.fault == "timeout" and not ask.baseline:
            self._look(late=1)
        elif answer.fault in GONE and self._answered and not ask.baseline:
            self._call()
        if answer.ok and not ask.baseline:
            self._answered, self._moved = True, self._clock.monotonic()
        return answer

    def wait(self, ask: Ask, job: Future[Answer]) -> Answer:
        """The answer that a thread is waiting for, or none once the engine is seen to stand still."""
        while True:
            try:
                return job.result(SLICE)
            except TimeoutError:
                if not self.halted and self._clock.monotonic() - self._moved > self._look_after:
                    self._look()
                if self.halted and not job.done():
                    return failure(ask.path, "halted", f"given up: {self.halted}", 0.0)

    def _call(self) -> None:
        """A server that answered before refuses a connection: is it gone, or is its queue full?"""
        with self._lock:
            if not self.halted and self._send(HEALTH).fault in GONE:
                self.halted, self.down = "nobody answers any more", True

    def _look(self, late: int = 0) -> None:
        """One asks /health, the others wait for it. Twice: a long step of a slow machine is no standstill."""
        began = self._clock.monotonic()
        with self._lock:
            self._late += late
            if not self.halted and self._late >= self._patience:
                self.halted = f"{self._late} requests got no answer in time"
            if self.halted or self._moved > began:
                return
            if stands_still(self._send(HEALTH)) and (why := stands_still(self._send(HEALTH))):
                self.halted, self.down = why, True
            else:
                self._moved = self._clock.monotonic()
