"""Both clocks keep the promises of Clock: aware wall time, a monotonic time, and sleep that advances them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from launcher.clock import Clock, SystemClock
from tests.support.fake_clock import FakeClock

CLOCKS = [SystemClock(), FakeClock(datetime(2026, 12, 1, tzinfo=UTC))]


@pytest.fixture(params=CLOCKS, ids=lambda clock: type(clock).__name__)
def clock(request: pytest.FixtureRequest) -> Clock:
    chosen: Clock = request.param
    return chosen


def test_the_wall_time_says_that_it_is_utc(clock: Clock) -> None:
    assert clock.now().utcoffset() == timedelta(0)


def test_sleep_waits_for_at_least_the_seconds_asked_for(clock: Clock) -> None:
    before = clock.monotonic()
    clock.sleep(0.01)
    assert clock.monotonic() - before >= 0.01


def test_time_does_not_stand_still_while_something_sleeps(clock: Clock) -> None:
    before = clock.now()
    clock.sleep(0.002)
    assert clock.now() > before


def test_the_clock_of_this_machine_shows_its_time() -> None:
    before = datetime.now(UTC)
    shown = SystemClock().now()
    assert before <= shown <= datetime.now(UTC)


def test_the_clock_for_tests_moves_only_by_sleeping() -> None:
    clock = FakeClock(datetime(2026, 12, 1, tzinfo=UTC))
    assert (clock.now(), clock.monotonic()) == (datetime(2026, 12, 1, tzinfo=UTC), 0.0)
    clock.sleep(90)
    assert (clock.now(), clock.monotonic()) == (datetime(2026, 12, 1, 0, 1, 30, tzinfo=UTC), 90.0)
