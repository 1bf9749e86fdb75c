"""Watch a started run until it is ready, gone, stalled or overdue. `run.collector` delivers its log and events.

A log line never proves readiness: the launched process itself must answer (`run.readiness`).
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
from launcher.run.state import State
from launcher.run.store import Run
from launcher.secrets import Masker

HEALTH_EVERY = 1.0  # seconds while loading
HEALTH_SOON = 0.2  # seconds once the HTTP server starts: ready → first probe within 0.5 s
AFTER_IMPOSTOR = 2.0  # seconds before asking again after another server answered on the port
CATCH_UP = 5.0  # seconds to wait for the log once the run is proved ready
NEAR_READY = ("warmup", "serving")


class Ending(Struct, frozen=True, kw_only=True):
    """How the watching ended: the new state of the run, and the reason as a sentence."""

    state: State
    reason: str


class Watching:
    """One run under observation: until it is ready, and afterwards while it is probed."""

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
        """Process the log and events that have arrived, waiting at most `timeout` seconds. Returns the new events."""
        return self._collector.pump(timeout)

    def close(self) -> None:
        """Stop watching. The run continues."""
        self._collector.close()
        self.endpoint.close()

    def until_ready(self, deadline: float) -> Ending:
        """Watch until the run is ready, gone or stalled, or until `deadline` seconds after its start."""
        while True:
            events = self.pump(0.1)
            if self.ended is not None:
                return self.gone(self.ended)
            if (ending := self._give_up(events, deadline)) is not None:
                return ending
            if self._look_at_health():
                return Ending(state=State.READY, reason="the server answers, and it is this run")

    def gone(self, end: Ended, moment: str = "") -> Ending:
        """Return what the end of the process means for the run. `moment` is appended to the reason."""
        if end.asked:
            return Ending(state=State.STOPPED, reason=f"stopped on request{moment}")
        if end.state == "vanished":
            return Ending(state=State.LOST, reason="the process disappeared without an exit code")
        return Ending(state=State.CRASHED, reason=f"{run_wording.exited(end.code)}{moment}")

    def _give_up(self, events: list[Event], deadline: float) -> Ending | None:
        """Return the ending of a run that is neither ready nor gone; None to keep watching."""
        collector = self._collector
        if collector.link_lost:
            return Ending(state=State.LOST, reason=f"lost the connection to the host: {collector.link_lost}")
        overdue = next((event for event in events if isinstance(event, Overdue)), None)
        stalled = next((event for event in events if isinstance(event, Stalled)), None)
        if stalled is not None:
            return Ending(state=State.STALLED, reason=run_wording.stalled(stalled))
        if collector.at <= deadline:
            return None
        if overdue is not None:
            reason = f"phase `{overdue.phase}` takes longer than its limit of {overdue.limit:.0f} s"
            return Ending(state=State.TIMED_OUT, reason=reason)
        return Ending(state=State.TIMED_OUT, reason=f"not ready {deadline:.0f} s after the start; {collector.doing}")

    def _look_at_health(self) -> bool:
        """Poll /health when it is due. Returns True once this run is proved ready and its log copy has caught up."""
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
            look = remote.look(self.transport, self.run)
        except LauncherError as error:
            self._not_proved(HEALTH_EVERY, f"cannot determine which server answers: {error.message}")
            return False
        identity = readiness.identify(info, look, self.run.plan)
        if identity.faults:
            self._not_proved(AFTER_IMPOSTOR, "; ".join(identity.faults))
            return False
        self.info = info
        collector.record(Ready(at=collector.at, evidence=identity.evidence))
        self._catch_up(look.log_bytes)
        return True

    def _not_proved(self, pause: float, reason: str) -> None:
        self._next_health = self._collector.at + pause
        self._collector.record(Impostor(at=self._collector.at, reason=reason))

    def _catch_up(self, log_bytes: int) -> None:
        """Read the log up to the moment of the proof: it may arrive later than the answers."""
        limit = self._collector.at + CATCH_UP
        while self._collector.log_bytes < log_bytes and self.ended is None and self._collector.at < limit:
            self.pump(0.05)
