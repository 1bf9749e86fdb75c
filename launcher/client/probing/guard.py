"""Sends requests until the engine hangs or is gone; then it cancels all further requests and reports the reason.

A frozen engine accepts requests and never answers them, so each one would wait for its full timeout. How to judge a
reply of /health is defined in `checks.after.probes.requests.stands_still`; `pool` runs the probes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError

from checks.after.probes.exchange import Answer, Ask
from checks.after.probes.replies import failure
from checks.after.probes.requests import HEALTH, stands_still
from launcher.clock import Clock

LOOK_AFTER = 60.0  # seconds without any answer before /health is requested
SLICE = 1.0  # seconds between two checks of that limit
PATIENCE = 16  # timed-out requests although /health is well: one of several ranks hangs

GONE = ("refused", "unreachable")

Send = Callable[[Ask], Answer]


class Guarded:
    """The `send` that all probes of a validation share. Thread-safe."""

    def __init__(self, send: Send, clock: Clock, look_after: float = LOOK_AFTER, patience: int = PATIENCE) -> None:
        self.halted = ""  # the reason why no further request is sent; empty while requests are sent
        self.down = False  # whether the reason is the engine: it hangs or is gone
        self._answered = False
        self._send, self._clock = send, clock
        self._look_after, self._patience = look_after, patience
        self._timeouts = 0
        self._healthy_at = clock.monotonic()  # time of the last answer, or of the last good /health
        self._lock = threading.Lock()

    def __call__(self, ask: Ask) -> Answer:
        """Send a request unless the probing is halted. A GET is always sent: it ends soon and is still informative."""
        if self.halted and ask.payload is not None:
            return failure(ask.path, "halted", f"not sent: {self.halted}", 0.0)
        answer = self._send(ask)
        if ask.path == HEALTH.path:
            self.halted = self.halted or stands_still(answer)
        elif answer.fault == "timeout" and not ask.baseline:
            self._check_health(timeouts=1)
        elif answer.fault in GONE and self._answered and not ask.baseline:
            self._check_refusal()
        if answer.ok and not ask.baseline:
            self._answered, self._healthy_at = True, self._clock.monotonic()
        return answer

    def wait(self, ask: Ask, job: Future[Answer]) -> Answer:
        """Return the answer of a request in flight, or a failure as soon as the probing is halted."""
        while True:
            try:
                return job.result(SLICE)
            except TimeoutError:
                if not self.halted and self._clock.monotonic() - self._healthy_at > self._look_after:
                    self._check_health()
                if self.halted and not job.done():
                    return failure(ask.path, "halted", f"cancelled: {self.halted}", 0.0)

    def _check_refusal(self) -> None:
        """A server that has answered before refuses a connection: find out whether it is gone or its queue is full."""
        with self._lock:
            if not self.halted and self._send(HEALTH).fault in GONE:
                self.halted, self.down = "the server stopped responding", True

    def _check_health(self, timeouts: int = 0) -> None:
        """Request /health in one thread while the others wait; twice, since a single long step is not a hang."""
        began = self._clock.monotonic()
        with self._lock:
            self._timeouts += timeouts
            if not self.halted and self._timeouts >= self._patience:
                self.halted = f"{self._timeouts} requests were not answered in time"
            if self.halted or self._healthy_at > began:
                return
            if stands_still(self._send(HEALTH)) and (reason := stands_still(self._send(HEALTH))):
                self.halted, self.down = reason, True
            else:
                self._healthy_at = self._clock.monotonic()
