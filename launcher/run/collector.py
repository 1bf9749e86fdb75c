"""Collects everything that arrives from a run: frames become log lines, events and progress, stored in its folder.

It makes no decision: `progress` judges the progress, and `flows.launch.watching` decides whether a run is ready,
stalled or gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from checks.during.log.lines import parse
from checks.during.log.phases import all_phases, phase_of
from launcher.clock import Clock
from launcher.run import progress
from launcher.run.events import Event, LinkLost, to_json
from launcher.run.frames import Ended, LogBytes, Replaced, Sample
from launcher.run.log_copy import LogCopy, Lost, Tail
from launcher.run.store import Run
from launcher.secrets import Masker
from launcher.transport.base import Transport


class Collector:
    """One run under observation. Not thread-safe; the tail reads in its own thread."""

    def __init__(
        self, run: Run, transport: Transport, clock: Clock, masker: Masker, inform: Callable[[Event], None]
    ) -> None:
        self._run, self._clock, self._inform = run, clock, inform
        self._copy = LogCopy(run, masker)
        self._tail = Tail(transport, run, self._copy.offset)
        self._watch = progress.Watch(classify=classify, limits=_limits())
        self._started_at = clock.monotonic() - seconds_since(run.info.get("started"), clock)
        self._link_lost = ""

    @property
    def at(self) -> float:
        """Seconds since the engine was started."""
        return self._clock.monotonic() - self._started_at

    @property
    def ended(self) -> Ended | None:
        """How the engine's process ended; None while it runs."""
        return self._watch.ended

    @property
    def phase(self) -> str:
        """The id of the phase that the log shows."""
        return self._watch.phase

    @property
    def doing(self) -> str:
        """What the processes did in the latest sample, in words."""
        return self._watch.doing

    @property
    def link_lost(self) -> str:
        """The reason why the connection was given up; empty while it works or is being restored."""
        return self._link_lost

    @property
    def log_bytes(self) -> int:
        """Number of bytes of the host's log that have arrived."""
        return self._copy.seen

    def pump(self, timeout: float) -> list[Event]:
        """Process and record everything that has arrived, waiting at most `timeout` seconds; returns the events."""
        events: list[Event] = []
        item = self._tail.next(timeout)
        while item is not None:
            events += self._take(item)
            item = self._tail.next(0)
        self._watch, time_events = progress.tick(self._watch, self.at)
        for event in time_events:
            self.record(event)
        return [*events, *time_events]

    def record(self, event: Event) -> None:
        """Store an event in the Run and pass it to the observer."""
        self._run.append_event(to_json(event))
        self._inform(event)

    def close(self) -> None:
        """Stop reading; the run continues."""
        self._tail.close()

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
                self._watch, end_events = progress.ended(self._watch, item, at)
                events += end_events
            case Lost():
                events.append(LinkLost(at=at, reason=item.reason))
                self._link_lost = item.reason if item.final else ""
        for event in events:
            self.record(event)
        return events

    def _lines(self, lines: list[str]) -> list[Event]:
        events: list[Event] = []
        for text in lines:
            for piece in parse(text.encode("utf-8", "surrogateescape"), 0):
                self._watch, line_events = progress.line(self._watch, piece.text, self.at)
                events += line_events
        return events


def seconds_since(started: Any, clock: Clock) -> float:
    """Return the seconds since a POSIX time; 0 when it is not set."""
    return max(0.0, clock.now().timestamp() - float(started)) if started else 0.0


def classify(text: str) -> progress.Milestone | None:
    """Return the progress that a log line shows; None for ordinary lines."""
    phase = phase_of(text, all_phases())
    if phase is None:
        return None
    return progress.Milestone(phase=phase.id, title=phase.title, fraction=fraction_of(text))


def fraction_of(text: str) -> float | None:
    """Return the fraction (0..1) in a tqdm bar or a shard counter, `45%|` or `45% Completed`; else None."""
    head, percent, _ = text.partition("%")
    digits = head[-3:].strip().rpartition(" ")[2]
    return int(digits) / 100 if percent and digits.isdecimal() and int(digits) <= 100 else None


def _limits() -> Mapping[str, progress.PhaseLimits]:
    return {p.id: progress.PhaseLimits(deadline=4 * p.patience, silence=p.patience) for p in all_phases()}
