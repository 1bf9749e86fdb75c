"""How a log ends: stopped on request, died, stuck, or simply cut off while all was well.

Only the engine's own way of dying and stopping, the same in every release; what made it die is `signatures`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from checks.catalog.engine_phrases import ANSWERED, ARGUMENTS, DECODE, DIED, PREFILL, READY
from checks.during.log.incidents import Incident
from checks.during.log.lines import Line, is_bar

INTERRUPTS = ("KeyboardInterrupt", "SystemExit", "CancelledError", "GeneratorExit")

# SIGTERM to the whole group, or to 0.5.18 and older, makes the engine call its own children crashed and exit with 137:
# what follows a request to stop is no failure.
_STOP = re.compile(
    r"^SIGTERM received\. |^Received SIG(?:TERM|INT)|^Signal SIGTERM received|^INFO: +Shutting down"
    r"|^\^C(?:\[20|$)|^Terminated$"
)
_DEATH = re.compile(rf"{DIED}|Initialization failed\. ")
_STALL = re.compile(
    r"Health check failed\. Server couldn't get a response|[Ww]atchdog timeout \(|Watchdog caught collective"
)
_REFUSES = re.compile(r'"GET /health(?:_generate)? [^"]*" 503')
_MANY_REFUSALS = 3
_ALIVE = re.compile("|".join((DECODE, ANSWERED, READY)))
_WORK = re.compile("|".join((DECODE, PREFILL, ANSWERED)))
# That all ranks work: the front end answers other requests, and one rank begins a batch, while another stands still.
_MOVES = re.compile(rf'{DECODE}|"GET /health(?:_generate)? [^"]*" 200')
_STUCK_AT_STOP = "received while health check failed"


class Ending(Struct, frozen=True, kw_only=True):
    """Lines at which things happened; 0 when they did not."""

    stop: int = 0  # somebody asked the engine to stop
    death: int = 0  # it went down without having been asked
    stall: int = 0  # it stopped answering and nothing moved afterwards
    last: Line | None = None  # the last line that shows progress
    alive: int = 0  # the last line that shows it answering
    passed: int = 0  # the last line of a standstill after which the scheduler worked again

    def after_stop(self, incident: Incident) -> bool:
        """Whether an incident only followed a request to stop."""
        return bool(self.stop) and incident.line > self.stop

    def went_on(self, incident: Incident) -> bool:
        """Whether the engine answered after an incident, whatever it ended of later."""
        return self.alive > incident.lines[-1].number

    def overcome(self, incident: Incident) -> bool:
        """Whether the engine went on: one check of health failed and then did not, or it answers and never died."""
        stood_still = any(_STALL.search(line.text) for line in incident.lines)
        if stood_still and incident.kind == "line" and incident.lines[-1].number <= self.passed:
            return True  # whatever it died of later
        failed = incident.kind == "traceback" or stood_still
        return failed and not self.death and not self.stall and self.went_on(incident)


def read_ending(lines: Sequence[Line], incidents: Iterable[Incident]) -> Ending:
    """The ending of a log, from what was kept of it."""
    stop, death, stall, alive, still, passed, refused = 0, 0, 0, 0, 0, 0, 0
    interrupted = {item.line for item in incidents if item.last and item.last.type == INTERRUPTS[0]}
    for line in lines:
        text = line.text
        if ARGUMENTS in text:
            stop = 0  # started again afterwards
            continue
        works = _WORK.search(text) is not None
        alive = line.number if works else alive
        # before it ever worked that is usual
        refused = 0 if works or not alive else refused + (_REFUSES.search(text) is not None)
        still = line.number if _STALL.search(text) else still
        passed = still if still and _MOVES.search(text) else passed
        if not stop and (_STOP.search(text) or line.number in interrupted):
            stop = line.number
        elif not stop and not death and _DEATH.search(text):
            death = line.number
        elif _STUCK_AT_STOP in text or (not stop and (refused >= _MANY_REFUSALS or _STALL.search(text))):
            stall = line.number
        elif stall and _ALIVE.search(text):
            stall = 0
    return Ending(stop=stop, death=death, stall=stall, last=_last_moved(lines), alive=alive, passed=passed)


def _last_moved(lines: Sequence[Line]) -> Line | None:
    return next((line for line in reversed(lines) if line.headed or is_bar(line.text)), None)
