"""How a log ends: stopped on request, died, stuck, or simply cut off while all was well.

Only the engine's own way of dying and stopping, the same in every release; what made it die is `signatures`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from checks.loglines import Line, is_bar
from checks.tracebacks import Incident

INTERRUPTS = ("KeyboardInterrupt", "SystemExit", "CancelledError", "GeneratorExit")

# SIGTERM to the whole group, or to 0.5.18 and older, makes the engine call its own children crashed and exit with 137:
# what follows a request to stop is no failure.
_STOP = re.compile(
    r"^SIGTERM received\. |^Received SIG(?:TERM|INT)|^Signal SIGTERM received|^INFO: +Shutting down"
    r"|^\^C(?:\[20|$)|^Terminated$"
)
_START = "server_args="
_DEATH = re.compile(
    r"Received sigquit from a child|SIGQUIT received\.|hit an exception|crashed with exit code|\bKilled\b"
    r"|scheduler died|scheduler is dead|Segmentation fault|core dumped|Initialization failed\. "
)
_STALL = re.compile(
    r"Health check failed\. Server couldn't get a response|[Ww]atchdog timeout \(|Watchdog caught collective"
)
_ALIVE = re.compile(r"Decode batch|\" 200 OK|fired up and ready")
_STUCK_AT_STOP = "received while health check failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Lines at which things happened; 0 when they did not."""

    stop: int = 0  # somebody asked the engine to stop
    death: int = 0  # it went down without having been asked
    stall: int = 0  # it stopped answering and nothing moved afterwards
    last: Line | None = None  # the last line that shows progress

    def after_stop(self, incident: Incident) -> bool:
        """Whether an incident only followed a request to stop."""
        return bool(self.stop) and incident.line > self.stop


def read(lines: Sequence[Line], incidents: Iterable[Incident]) -> Ending:
    """The ending of a log, from what was kept of it."""
    stop, death, stall = 0, 0, 0
    interrupted = {item.line for item in incidents if item.last and item.last.type == INTERRUPTS[0]}
    for line in lines:
        text = line.text
        if _START in text:
            stop = 0  # started again afterwards
        elif not stop and (_STOP.search(text) or line.number in interrupted):
            stop = line.number
        elif not stop and not death and _DEATH.search(text):
            death = line.number
        elif _STUCK_AT_STOP in text or (not stop and _STALL.search(text)):
            stall = line.number
        elif stall and _ALIVE.search(text):
            stall = 0
    return Ending(stop=stop, death=death, stall=stall, last=_last_moved(lines))


def _last_moved(lines: Sequence[Line]) -> Line | None:
    return next((line for line in reversed(lines) if line.headed or is_bar(line.text)), None)
