"""Watch a started run until it is ready or gone; keep its log, events and state while something else works on it.

The judging is pure and elsewhere (`watch`, `readiness`); here frames, ticks and health answers are brought to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from checks.during.log.lines import parse
from checks.during.log.phases import all_phases, phase_of
from launcher.client.endpoint import planned
from launcher.clock import Clock
from launcher.errors import LauncherError
from launcher.plan.launch_plan import LaunchPlan
from launcher.run import progress, readiness, remote, run_wording
from launcher.run.events import Answering, Event, Impostor, LinkLost, Overdue, Ready, Stalled, to_json
from launcher.run.frames import Ended, LogBytes, Replaced, Sample
from launcher.run.log_copy import LogCopy, Lost, Tail
from launcher.run.store import Run, State
from launcher.secrets import Masker
from launcher.transport.base import Transport

HEALTH_EVERY = 1.0  # seconds while loading
HEALTH_SOON = 0.2  # seconds once the HTTP server starts: ready → first probe within 0.5 s
CATCH_UP = 5.0  # seconds to wait for the log at that moment
NEAR_READY = ("warmup", "serving")


class Ending(Struct, frozen=True, kw_only=True):
    """How the watching ended: the new state of the run and the sentence that says why."""

    state: State
    reason: str


class Watching:
    """One run under observation. Not thread-safe; the tail has a thread of its own."""

    def __init__(
        self,
        run: Run,
        plan: LaunchPlan,
        transport: Transport,
        clock: Clock,
        masker: Masker,
        tell: Callable[[Event], None],
    ) -> None:
        self.run, self.plan, self.transport = run, plan, transport
        self._clock, self._tell = clock, tell
        self._copy = LogCopy(run, masker)
        self._tail = Tail(lambda: transport, plan, run, self._copy.offset)
        self._watch = progress.Watch(classify=_classify, limits=_limits())
        self._zero = clock.monotonic() - seconds_since(run.info.get("started"), clock)
        self._health = 0
        self._next_health = 0.0
        self._log_bytes = 0
        self.link_lost = ""
        self.info: dict[str, Any] = {}  # what the server said about itself when it got ready
        self.endpoint = planned(transport, plan)

    @property
    def at(self) -> float:
        """Seconds since the engine was started."""
        return self._clock.monotonic() - self._zero

    @property
    def ended(self) -> Ended | None:
        """Set when the engine's process is gone."""
        return self._watch.ended

    @property
    def phase(self) -> str:
        """Phase the log shows."""
        return self._watch.phase

    def until_ready(self, deadline: float) -> Ending:
        """Until ready, gone, stalled or `deadline` seconds after the start."""
        while True:
            events = self.pump(0.1)
            if self.ended is not None:
                return self.gone(self.ended)
            if self.link_lost:
                return Ending(state=State.LOST, reason=f"the connection is gone: {self.link_lost}")
            overdue = next((e for e in events if isinstance(e, Overdue)), None)
            stalled = next((e for e in events if isinstance(e, Stalled)), None)
            if stalled is not None:
                return Ending(state=State.STALLED, reason=run_wording.stalled(stalled))
            if overdue is not None and self.at > deadline:
                return Ending(state=State.TIMED_OUT, reason=f"{overdue.phase} takes longer than {overdue.limit:.0f} s")
            if self.at > deadline:
                return Ending(
                    state=State.TIMED_OUT, reason=f"not ready {deadline:.0f} s after the start; {self._watch.doing}"
                )
            if self._look_at_health():
                self._catch_up()
                return Ending(state=State.READY, reason="it answers, and it is this run")

    def pump(self, timeout: float) -> list[Event]:
        """Take in what has arrived, waiting at most `timeout` seconds; everything is recorded as it comes."""
        events: list[Event] = []
        item = self._tail.next(timeout)
        while item is not None:
            events += self._take(item)
            item = self._tail.next(0)
        self._watch, more = progress.tick(self._watch, self.at)
        for event in more:
            self.record(event)
        return [*events, *more]

    def record(self, event: Event) -> None:
        """Keep an event in the Run and tell it."""
        self.run.append_event(to_json(event))
        self._tell(event)

    def close(self) -> None:
        """Stop watching; the run goes on."""
        self._tail.close()
        self.endpoint.close()

    def _take(self, item: object) -> list[Event]:
        at, events = self.at, list[Event]()
        match item:
            case LogBytes():
                events += self._lines(self._copy.feed(item))
            case Replaced():
                self._copy.restart()
            case Sample():
                self._watch, events = progress.sample(self._watch, item, at)
            case Ended():
                events += self._lines(self._copy.finish())
                self._watch, more = progress.ended(self._watch, item, at)
                events += more
            case Lost():
                events.append(LinkLost(at=at, reason=item.reason))
                self.link_lost = item.reason if item.final else ""
        for event in events:
            self.record(event)
        return events

    def _lines(self, lines: list[str]) -> list[Event]:
        events: list[Event] = []
        for text in lines:
            for piece in parse(text.encode("utf-8", "surrogateescape"), 0):
                self._watch, more = progress.line(self._watch, piece.text, self.at)
                events += more
        return events

    def _look_at_health(self) -> bool:
        """Ask /health when it is time to; True when this run is proved ready."""
        if self.at < self._next_health:
            return False
        status = readiness.health(self.endpoint)
        self._next_health = self.at + (HEALTH_SOON if self.phase in NEAR_READY else HEALTH_EVERY)
        if status != self._health:
            self._health = status
            self.record(Answering(at=self.at, status=status))
        return status == 200 and self._prove()

    def _catch_up(self) -> None:
        """Take in the log up to the moment of the proof: it may come slower than the answers do."""
        limit = self.at + CATCH_UP
        while self._copy.seen < self._log_bytes and self.ended is None and self.at < limit:
            self.pump(0.05)

    def _prove(self) -> bool:
        try:
            info = readiness.server_info(self.endpoint)
            seen = remote.look(
                self.transport, self.plan.work_dir, [self.run.id], port=self.plan.server_port, python=self.plan.python
            )[0]
        except LauncherError as error:
            self._next_health = self.at + HEALTH_EVERY
            self.record(Impostor(at=self.at, reason=f"cannot tell who answers: {error.message}"))
            return False
        self._log_bytes = seen.log_bytes
        identity = readiness.identify(info, seen, self.plan)
        if identity.faults:
            self._next_health = self.at + 2.0
            self.record(Impostor(at=self.at, reason="; ".join(identity.faults)))
            return False
        self.info = info
        self.record(Ready(at=self.at, evidence=identity.evidence))
        return True

    def gone(self, end: Ended, moment: str = "") -> Ending:
        """What the end of the process means for the run. `moment` says what was going on."""
        if end.asked:
            return Ending(state=State.STOPPED, reason=f"it was asked to stop{moment}")
        if end.state == "vanished":
            return Ending(state=State.LOST, reason="the process is gone and left no exit code")
        return Ending(state=State.CRASHED, reason=f"{run_wording.exited(end.code)}{moment}")


def seconds_since(started: Any, clock: Clock) -> float:
    """Seconds since a moment written as POSIX time; 0 when there is none."""
    return max(0.0, clock.now().timestamp() - float(started)) if started else 0.0


def _classify(text: str) -> progress.Milestone | None:
    found = phase_of(text, all_phases())
    if found is None:
        return None
    return progress.Milestone(phase=found.id, title=found.title, fraction=fraction_of(text))


def fraction_of(text: str) -> float | None:
    """Progress out of a tqdm bar or a shard counter: `45%|`, `45% Completed`."""
    head, percent, _ = text.partition("%")
    digits = head[-3:].strip().rpartition(" ")[2]
    return int(digits) / 100 if percent and digits.isdigit() and int(digits) <= 100 else None


def _limits() -> Mapping[str, progress.PhaseLimits]:
    return {p.id: progress.PhaseLimits(deadline=4 * p.patience, silence=p.patience) for p in all_phases()}
