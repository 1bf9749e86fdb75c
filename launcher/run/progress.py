"""Pure state machine over a starting server: (state, line | sample | tick | end) → (state, [Event]).

No sleeping, no SSH, no clock: time comes in with each input as seconds since the start. It decides what phase the
engine is in, whether something still moves, and when a phase is overdue. Readiness is decided by `readiness`, never
by a log line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from launcher.run.events import Activity, Event, Exited, Overdue, PhaseEntered, Progress, Resumed, Stalled
from launcher.run.frames import Ended, Sample
from launcher.run.run_wording import doing as doing_words

CPU_MOVES = 0.2  # CPU seconds between two samples (5 s apart) that count as work; an idle Python poll uses less
READ_MOVES = 1 << 20  # bytes


class Milestone(Struct, frozen=True, kw_only=True):
    """What one log line says about progress."""

    phase: str
    title: str
    fraction: float | None = None


class PhaseLimits(Struct, frozen=True, kw_only=True):
    """Seconds a phase may take, and may be silent and idle, before somebody should look."""

    deadline: float
    silence: float


Classify = Callable[[str], Milestone | None]


class Watch(Struct, frozen=True, kw_only=True):
    """Everything remembered about the start so far."""

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
        """Limits of the phase it is in."""
        return self.limits.get(self.phase, self.default_limits)


def line(watch: Watch, text: str, at: float) -> tuple[Watch, list[Event]]:
    """A log line came."""
    watch, events = _moved(replace(watch, last_line=text), at)
    found = watch.classify(text)
    if found is None:
        return watch, events
    if found.phase != watch.phase:
        watch = replace(watch, phase=found.phase, phase_since=at, overdue=False, last_fraction=None)
        return watch, [*events, PhaseEntered(at=at, phase=found.phase, title=found.title)]
    if found.fraction is not None and found.fraction != watch.last_fraction:
        watch = replace(watch, last_fraction=found.fraction)
        events.append(Progress(at=at, phase=found.phase, text=found.title, fraction=found.fraction))
    return watch, events


def sample(watch: Watch, seen: Sample, at: float) -> tuple[Watch, list[Event]]:
    """The host said what the processes do; using CPU or reading is moving, too."""
    cpu, read, activity = seen.cpu - watch.cpu, seen.read - watch.read, activity_of(seen)
    doing = doing_words(activity, seen, cpu, read)
    watch = replace(watch, cpu=seen.cpu, read=seen.read, doing=doing, activity=activity)
    return _moved(watch, at) if cpu >= CPU_MOVES or read >= READ_MOVES else (watch, [])


def tick(watch: Watch, at: float) -> tuple[Watch, list[Event]]:
    """Time passed."""
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


def ended(watch: Watch, seen: Ended, at: float) -> tuple[Watch, list[Event]]:
    """The process is gone."""
    return replace(watch, ended=seen), [Exited(at=at, state=seen.state, code=seen.code)]


def activity_of(seen: Sample) -> Activity:
    """What a sample of the processes shows."""
    if seen.compilers:
        return Activity.COMPILING
    return Activity.STOPPED if seen.stopped else Activity.OTHER


def _moved(watch: Watch, at: float) -> tuple[Watch, list[Event]]:
    resumed: list[Event] = [Resumed(at=at, phase=watch.phase)] if watch.stalled else []
    return replace(watch, moved_at=at, stalled=False), resumed
