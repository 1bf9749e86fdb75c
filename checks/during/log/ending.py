"""Read how a log ends: stopped on request, died, stalled, or cut off while the engine was healthy.

This module knows only how the engine stops and dies, which is the same in every release; the patterns of the knowledge
explain why it died.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from checks.catalog.engine_phrases import ANSWERED, ARGUMENTS, DECODE, DIED, PREFILL, READY
from checks.during.log.incidents import Incident
from checks.during.log.lines import Line, is_bar

INTERRUPTS = ("KeyboardInterrupt", "SystemExit", "CancelledError", "GeneratorExit")

# After a SIGTERM to the whole group, or to 0.5.18 and older, the engine reports its own children as crashed and exits
# with 137: lines after a request to stop are not a failure.
_STOP = re.compile(
    r"^SIGTERM received\. |^Received SIG(?:TERM|INT)|^Signal SIGTERM received|^INFO: +Shutting down"
    r"|^\^C(?:\[20|$)|^Terminated$"
)
_DEATH = re.compile(rf"{DIED}|Initialization failed\. ")
_STALL = re.compile(
    r"Health check failed\. Server couldn't get a response|[Ww]atchdog timeout \(|Watchdog caught collective"
)
_UNHEALTHY = re.compile(r'"GET /health(?:_generate)? [^"]*" 503')
_MANY_UNHEALTHY = 3
_ALIVE = re.compile("|".join((DECODE, ANSWERED, READY)))
_WORK = re.compile("|".join((DECODE, PREFILL, ANSWERED)))
# Proof that all ranks work. Other lines do not prove it: while one rank is stuck, the front end answers other requests,
# and another rank begins a batch.
_ALL_RANKS_WORK = re.compile(rf'{DECODE}|"GET /health(?:_generate)? [^"]*" 200')
_STUCK_AT_STOP = "received while health check failed"


class Ending(Struct, frozen=True, kw_only=True):
    """Numbers of the lines that decide how a log ends; 0 for an event that did not happen."""

    stop: int = 0  # a request to stop
    death: int = 0  # the engine died without a request to stop
    stall: int = 0  # the engine stopped responding and did not recover
    last: Line | None = None  # the last line that shows progress
    alive: int = 0  # the last line that shows a responding engine
    passed: int = 0  # the last line of a stall from which the scheduler recovered

    def after_stop(self, incident: Incident) -> bool:
        """Whether an incident happened after a request to stop."""
        return bool(self.stop) and incident.line > self.stop

    def went_on(self, incident: Incident) -> bool:
        """Whether the engine responded after an incident, whatever ended it later."""
        return self.alive > incident.lines[-1].number

    def overcome(self, incident: Incident) -> bool:
        """Whether the engine survived: a failed health check passed again, or it responded later and never died."""
        stalled = any(_STALL.search(line.text) for line in incident.lines)
        if stalled and incident.kind == "line" and incident.lines[-1].number <= self.passed:
            return True  # whatever ended it later
        failed = incident.kind in ("traceback", "native") or stalled
        return failed and not self.death and not self.stall and self.went_on(incident)


def read_ending(lines: Sequence[Line], incidents: Iterable[Incident]) -> Ending:
    """Return the ending of a log from its kept lines."""
    stop, death, stall, alive, last_stall, passed, unhealthy = 0, 0, 0, 0, 0, 0, 0
    interrupted = {item.line for item in incidents if item.last and item.last.type == INTERRUPTS[0]}
    for line in lines:
        text = line.text
        if ARGUMENTS in text:
            stop = 0  # the engine was started again
            continue
        works = _WORK.search(text) is not None
        alive = line.number if works else alive
        # a 503 of /health before the first answer is normal
        unhealthy = 0 if works or not alive else unhealthy + (_UNHEALTHY.search(text) is not None)
        last_stall = line.number if _STALL.search(text) else last_stall
        passed = last_stall if last_stall and _ALL_RANKS_WORK.search(text) else passed
        if not stop and (_STOP.search(text) or line.number in interrupted):
            stop = line.number
        elif not stop and not death and _DEATH.search(text):
            death = line.number
        elif _STUCK_AT_STOP in text or (not stop and (unhealthy >= _MANY_UNHEALTHY or _STALL.search(text))):
            stall = line.number
        elif stall and _ALIVE.search(text):
            stall = 0
    return Ending(stop=stop, death=death, stall=stall, last=_last_progress(lines), alive=alive, passed=passed)


def _last_progress(lines: Sequence[Line]) -> Line | None:
    return next((line for line in reversed(lines) if line.headed or is_bar(line.text)), None)
