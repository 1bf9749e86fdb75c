"""A pure state machine over a starting server: (state, line | sample | tick | end) → (state, [Event]).

It does not sleep, use SSH or read a clock: each input carries its time in seconds since the start. It decides which
phase the engine is in, whether the phase makes progress, and when it is overdue. `readiness` decides whether the server
is ready, never a log line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from launcher.run.events import Activity, Event, Exited, Overdue, PhaseEntered, Progress, Resumed, Stalled
from launcher.run.frames import Ended, Sample
from launcher.run.run_wording import doing as doing_words

CPU_MOVES = 0.2  # CPU seconds between two samples (5 s apart) that count as progress; an idle Python poll uses less
READ_MOVES = 1 << 20  # bytes read between two samples that count as progress


class Milestone(Struct, frozen=True, kw_only=True):
    """The phase, and its progress, that one log line shows."""

    phase: str
    title: str
    fraction: float | None = None


class PhaseLimits(Struct, frozen=True, kw_only=True):
    """Seconds that a phase may take (`deadline`), and may be without progress (`silence`), before it is reported."""

    deadline: float
    silence: float


Classify = Callable[[str], Milestone | None]


class Watch(Struct, frozen=True, kw_only=True):
    """The state of the machine: everything known about the start so far."""

    classify: Classify
    limits: Mapping[str, PhaseLimits]
    default_limits: PhaseLimits = field(default_factory=lambda: PhaseLimits(deadline=600, silence=180))
    phase: str = "starting"
    phase_since: float = 0.0
    moved_at: float = 0.0
    last_line: str = ""
    last_fraction: float | None = None
    cpu: float = 0.0
    read: int = 0
    doing: str = ""
    activity: Activity = Activity.UNKNOWN
    stalled: bool = False
    overdue: bool = False
    ended: Ended | None = None

    @property
    def limit(self) -> PhaseLimits:
        """The limits of the current phase."""
        return self.limits.get(self.phase, self.default_limits)


def line(watch: Watch, text: str, at: float) -> tuple[Watch, list[Event]]:
    """Process a log line."""
    watch, events = _moved(replace(watch, last_line=text), at)
    milestone = watch.classify(text)
    if milestone is None:
        return watch, events
    phase, title, fraction = milestone.phase, milestone.title, milestone.fraction
    if phase != watch.phase:
        watch = replace(watch, phase=phase, phase_since=at, overdue=False, last_fraction=None)
        return watch, [*events, PhaseEntered(at=at, phase=phase, title=title)]
    if fraction is not None and fraction != watch.last_fraction:
        watch = replace(watch, last_fraction=fraction)
        events.append(Progress(at=at, phase=phase, text=title, fraction=fraction))
    return watch, events


def sample(watch: Watch, latest: Sample, at: float) -> tuple[Watch, list[Event]]:
    """Process a sample of the processes; CPU time and bytes read also count as progress."""
    cpu, read, activity = latest.cpu - watch.cpu, latest.read - watch.read, activity_of(latest)
    doing = doing_words(activity, latest, cpu, read)
    watch = replace(watch, cpu=latest.cpu, read=latest.read, doing=doing, activity=activity)
    return _moved(watch, at) if cpu >= CPU_MOVES or read >= READ_MOVES else (watch, [])


def tick(watch: Watch, at: float) -> tuple[Watch, list[Event]]:
    """Process the passing of time: report a stall or an overdue phase."""
    events: list[Event] = []
    silent = at - watch.moved_at
    if not watch.stalled and silent > watch.limit.silence:
        watch = replace(watch, stalled=True)
        events.append(
            Stalled(
                at=at,
                phase=watch.phase,
                silent=silent,
                last_line=watch.last_line,
                doing=watch.doing or "unknown",
                activity=watch.activity,
            )
        )
    if not watch.overdue and at - watch.phase_since > watch.limit.deadline:
        watch = replace(watch, overdue=True)
        doing, limit = watch.doing or "unknown", watch.limit.deadline
        events.append(Overdue(at=at, phase=watch.phase, limit=limit, doing=doing, activity=watch.activity))
    return watch, events


def ended(watch: Watch, end: Ended, at: float) -> tuple[Watch, list[Event]]:
    """Process the end of the engine's process."""
    return replace(watch, ended=end), [Exited(at=at, state=end.state, code=end.code)]


def activity_of(latest: Sample) -> Activity:
    """Return what the processes of a sample do."""
    if latest.compilers:
        return Activity.COMPILING
    return Activity.STOPPED if latest.stopped else Activity.OTHER


def _moved(watch: Watch, at: float) -> tuple[Watch, list[Event]]:
    resumed: list[Event] = [Resumed(at=at, phase=watch.phase)] if watch.stalled else []
    return replace(watch, moved_at=at, stalled=False), resumed
