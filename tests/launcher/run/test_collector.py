"""What arrives from a run becomes its log, its events and its progress."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from launcher.clock import SystemClock
from launcher.errors import HostUnreachable
from launcher.run.collector import Collector, classify, fraction_of, seconds_since
from launcher.run.events import Event, Exited, LinkLost, PhaseEntered, from_json
from launcher.run.frames import Ended
from launcher.secrets import Masker
from launcher.transport.base import Command
from launcher.transport.local import LocalStream, LocalTransport
from tests.support.fake_clock import FakeClock
from tests.support.scripted_run import ScriptedRun

Start = Callable[..., ScriptedRun]
NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
WEIGHTS = "Load weight begin. avail mem=23.00 GB"


def collect(run: ScriptedRun, transport: LocalTransport, until: Callable[[Collector], bool]) -> list[Event]:
    """Collect until the condition holds; returns what the observer was told."""
    told: list[Event] = []
    collector = Collector(run.run, transport, SystemClock(), Masker(["hunter22"]), told.append)
    pumped: list[Event] = []
    for _ in range(400):
        pumped += collector.pump(0.1)
        if until(collector):
            break
    else:
        pytest.fail(f"collected only {told}")
    collector.close()
    assert pumped == told == [from_json(line) for line in run.run.events()]
    return told


def has_ended(collector: Collector) -> bool:
    return collector.ended is not None


def test_log_lines_become_phases_and_the_end_of_the_process_an_event(start_run: Start) -> None:
    run = start_run(f"printf 'key hunter22 and \\377\\n[2026-11-29 12:00:00] {WEIGHTS}'; exit 9")
    seen: list[Collector] = []

    def ended(collector: Collector) -> bool:
        seen.append(collector)
        return has_ended(collector)

    events = collect(run, LocalTransport(), ended)
    assert [event.phase for event in events if isinstance(event, PhaseEntered)] == ["weights"]
    assert isinstance(events[-1], Exited)
    assert (events[-1].state, events[-1].code) == ("exited", 9)
    collector = seen[-1]
    assert (collector.phase, collector.ended, collector.link_lost) == ("weights", Ended("exited", 9), "")
    assert collector.log_bytes == run.log.stat().st_size
    copy = run.run.log.read_bytes()
    assert copy == run.log.read_bytes().replace(b"hunter22", "•••".encode())


class Silent(LocalTransport):
    """A connection that is refused `times` times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def stream(self, command: Command) -> LocalStream:
        self.times -= 1
        if self.times >= 0:
            raise HostUnreachable("no route")
        return super().stream(command)


def test_a_lost_link_that_is_restored_is_an_event_and_not_the_end(start_run: Start) -> None:
    run = start_run("echo one; exit 0")
    reasons: list[str] = []

    def ended(collector: Collector) -> bool:
        reasons.append(collector.link_lost)
        return has_ended(collector)

    events = collect(run, Silent(1), ended)
    assert set(reasons) == {""}
    assert [event.reason for event in events if isinstance(event, LinkLost)] == ["no route"]
    assert run.run.log.read_text() == "one\n"


def test_the_latest_sample_is_worded(start_run: Start) -> None:
    run = start_run("exec sleep 600")
    worded: list[str] = []

    def sampled(collector: Collector) -> bool:
        worded.append(collector.doing)
        return bool(collector.doing)

    collect(run, LocalTransport(), sampled)
    assert "process" in worded[-1]


def test_time_counts_from_the_start_of_the_engine_even_for_a_later_launcher(start_run: Start) -> None:
    run = start_run("exit 0")
    run.run.update(started=NOW.timestamp() - 600)
    clock = FakeClock(NOW)
    collector = Collector(run.run, LocalTransport(), clock, Masker(), lambda _: None)
    clock.sleep(5)
    assert collector.at == 605
    collector.close()


@pytest.mark.parametrize(
    ("started", "seconds"),
    [(None, 0.0), (0, 0.0), (NOW.timestamp() - 7, 7.0), (str(NOW.timestamp() - 7), 7.0), (NOW.timestamp() + 99, 0.0)],
)
def test_a_start_that_is_missing_or_ahead_of_this_clock_is_now(started: object, seconds: float) -> None:
    assert seconds_since(started, FakeClock(NOW)) == seconds


@pytest.mark.parametrize(
    ("text", "fraction"),
    [
        ("Loading shards:  45%|####", 0.45),
        ("100% Completed | 4/4", 1.0),
        ("0%|", 0.0),
        ("at 5% of x", 0.05),
        ("progress:7%", None),
        ("token usage: 0.5", None),
        ("٤٥%|", 0.45),
        ("150% of it", None),
        ("²%", None),
        ("%", None),
        ("", None),
    ],
)
def test_percentages_are_read_from_progress_bars(text: str, fraction: float | None) -> None:
    assert fraction_of(text) == fraction


def test_a_line_without_a_phase_is_no_milestone() -> None:
    assert classify("INFO: GET /health") is None
    milestone = classify(f"{WEIGHTS} 50%")
    assert milestone is not None
    assert (milestone.phase, milestone.fraction) == ("weights", 0.5)
