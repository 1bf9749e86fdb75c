"""Decide what becomes of a started run: ready, gone, stalled, or overdue. `run.collector` brings in what arrives.

Ready is never a log line: the launched process itself must answer (`run.readiness`).
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from launcher.client.endpoint import planned
from launcher.client.server_info import read_server_info
from launcher.errors import LauncherError
from launcher.flows.launch.flow_context import FlowContext
from launcher.run import readiness, remote, run_wording
from launcher.run.collector import Collector
from launcher.run.events import Answering, Event, Impostor, Overdue, Ready, Stalled
from launcher.run.frames import Ended
from launcher.run.store import Run, State
from launcher.secrets import Masker

HEALTH_EVERY = 1.0  # seconds while loading
HEALTH_SOON = 0.2  # seconds once the HTTP server starts: ready → first probe within 0.5 s
AFTER_IMPOSTOR = 2.0  # seconds until another server on the port is looked at again
CATCH_UP = 5.0  # seconds to wait for the log at the moment of the proof
NEAR_READY = ("warmup", "serving")


class Ending(Struct, frozen=True, kw_only=True):
    """How the watching ended: the new state of the run and the sentence that says why."""

    state: State
    reason: str


class Watching:
    """One run on its way to ready, and afterwards while it is probed."""

    def __init__(self, run: Run, context: FlowContext, masker: Masker) -> None:
        self.run, self.transport = run, context.transport
        self.endpoint = planned(context.transport, run.plan)
        self.info: dict[str, Any] = {}  # what the server reported about itself when it was proved ready
        self._collector = Collector(run, context.transport, context.clock, masker, context.observer.event)
        self._health = 0
        self._next_health = 0.0

    @property
    def ended(self) -> Ended | None:
        """Set when the engine's process is gone."""
        return self._collector.ended

    def pump(self, timeout: float) -> list[Event]:
        """Bring in what has arrived, waiting at most `timeout` seconds."""
        return self._collector.pump(timeout)

    def close(self) -> None:
        """Stop watching; the run goes on."""
        self._collector.close()
        self.endpoint.close()

    def until_ready(self, deadline: float) -> Ending:
        """Until ready, gone, stalled or `deadline` seconds after the start."""
        while True:
            events = self.pump(0.1)
            if self.ended is not None:
                return self.gone(self.ended)
            if (ending := self._given_up(events, deadline)) is not None:
                return ending
            if self._look_at_health():
                return Ending(state=State.READY, reason="it answers, and it is this run")

    def gone(self, end: Ended, moment: str = "") -> Ending:
        """What the end of the process means for the run. `moment` says what was going on."""
        if end.asked:
            return Ending(state=State.STOPPED, reason=f"it was asked to stop{moment}")
        if end.state == "vanished":
            return Ending(state=State.LOST, reason="the process is gone and left no exit code")
        return Ending(state=State.CRASHED, reason=f"{run_wording.exited(end.code)}{moment}")

    def _given_up(self, events: list[Event], deadline: float) -> Ending | None:
        """Why the waiting ends without the run being ready or gone; None to go on."""
        collector = self._collector
        if collector.link_lost:
            return Ending(state=State.LOST, reason=f"the connection is gone: {collector.link_lost}")
        overdue = next((event for event in events if isinstance(event, Overdue)), None)
        stalled = next((event for event in events if isinstance(event, Stalled)), None)
        if stalled is not None:
            return Ending(state=State.STALLED, reason=run_wording.stalled(stalled))
        if collector.at <= deadline:
            return None
        if overdue is not None:
            return Ending(state=State.TIMED_OUT, reason=f"{overdue.phase} takes longer than {overdue.limit:.0f} s")
        return Ending(state=State.TIMED_OUT, reason=f"not ready {deadline:.0f} s after the start; {collector.doing}")

    def _look_at_health(self) -> bool:
        """Ask /health when it is time to; True when this run is proved ready and its log has caught up."""
        collector = self._collector
        if collector.at < self._next_health:
            return False
        status = readiness.health(self.endpoint)
        self._next_health = collector.at + (HEALTH_SOON if collector.phase in NEAR_READY else HEALTH_EVERY)
        if status != self._health:
            self._health = status
            collector.record(Answering(at=collector.at, status=status))
        return status == 200 and self._prove()

    def _prove(self) -> bool:
        collector = self._collector
        try:
            info = read_server_info(self.endpoint, 20)
            seen = remote.look(self.transport, self.run)
        except LauncherError as error:
            self._not_proved(HEALTH_EVERY, f"cannot determine who answers: {error.message}")
            return False
        identity = readiness.identify(info, seen, self.run.plan)
        if identity.faults:
            self._not_proved(AFTER_IMPOSTOR, "; ".join(identity.faults))
            return False
        self.info = info
        collector.record(Ready(at=collector.at, evidence=identity.evidence))
        self._catch_up(seen.log_bytes)
        return True

    def _not_proved(self, pause: float, reason: str) -> None:
        self._next_health = self._collector.at + pause
        self._collector.record(Impostor(at=self._collector.at, reason=reason))

    def _catch_up(self, log_bytes: int) -> None:
        """Bring in the log up to the moment of the proof: it may come slower than the answers do."""
        limit = self._collector.at + CATCH_UP
        while self._collector.log_bytes < log_bytes and self.ended is None and self._collector.at < limit:
            self.pump(0.05)
