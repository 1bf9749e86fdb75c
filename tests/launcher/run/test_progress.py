"""The state machine: lines, samples and time in, events out. No clock, no sleeping."""

from launcher.run.collector import classify
from launcher.run.events import Exited, PhaseEntered, Progress, Resumed, Stalled
from launcher.run.frames import Ended, Sample
from launcher.run.progress import PhaseLimits, Watch, ended, line, sample, tick

LIMITS = {"weights": PhaseLimits(deadline=100, silence=30)}


def watch() -> Watch:
    return Watch(classify=classify, limits=LIMITS, default_limits=PhaseLimits(deadline=50, silence=20))


def busy(cpu: float, read: int = 0, *names: str) -> Sample:
    rows = tuple({"pid": n, "name": name, "state": "R", "cpu": cpu} for n, name in enumerate(names or ("python",)))
    return Sample(rows, cpu, read)


def test_phases_follow_the_log_and_progress_is_reported_once() -> None:
    state, events = line(watch(), "Load weight begin. avail mem=23 GB", 1.0)
    assert [type(event) for event in events] == [PhaseEntered]
    bar = "Loading safetensors checkpoint shards:  50% Completed | 1/2"
    state, events = line(state, bar, 2.0)
    assert next(event for event in events if isinstance(event, Progress)).fraction == 0.5
    _, events = line(state, bar, 3.0)
    assert not events


def test_silence_with_cpu_time_is_not_a_stall_and_silence_without_is() -> None:
    state, _ = line(watch(), "Load weight begin. avail mem=23 GB", 0.0)
    for second in range(5, 60, 5):
        state, _ = sample(state, busy(second * 1.0), float(second))
        state, events = tick(state, float(second))
        assert not events
    state, _ = sample(state, busy(55.0), 60.0)
    state, events = tick(state, 90.0)
    stalled = events[0]
    assert isinstance(stalled, Stalled)
    assert stalled.phase == "weights"
    assert "Load weight begin" in stalled.last_line
    assert tick(state, 91.0)[1] == []


def test_reading_from_disk_counts_as_progress() -> None:
    state, _ = sample(watch(), busy(0.0, 1 << 30), 19.0)
    assert tick(state, 30.0)[1] == []


def test_progress_after_a_stall_is_reported() -> None:
    state, _ = tick(watch(), 25.0)
    _, events = line(state, "anything", 26.0)
    assert [type(event) for event in events] == [Resumed]


def test_running_compilers_are_named() -> None:
    state, _ = sample(watch(), busy(1.0, 0, "/usr/local/cuda/bin/nvcc -x cu", "cicc --arch"), 1.0)
    assert state.doing == "compiling kernels (cicc, nvcc)"


def test_stopped_processes_are_reported() -> None:
    stopped = Sample(({"pid": 1, "name": "sglang::scheduler", "state": "T", "cpu": 1.0},), 1.0, 0)
    state, _ = sample(watch(), stopped, 1.0)
    assert "1 stopped by a signal" in state.doing


def test_the_end_of_the_process_is_an_event() -> None:
    state, events = ended(watch(), Ended("exited", 137), 4.0)
    assert events == [Exited(at=4.0, state="exited", code=137)]
    assert state.ended is not None
