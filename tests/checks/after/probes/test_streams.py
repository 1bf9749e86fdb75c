"""The rate of a stream, and the tokens per second of several at once."""

from __future__ import annotations

import pytest

from checks.after.probes.streams import measure, throughput
from tests.support.driving import said


def test_a_stream_is_measured_after_its_first_event() -> None:
    stream = measure(said("abc", times=(0.5, 0.6, 0.8), counts=(1, 2, 5)))
    assert stream is not None
    assert (stream.first, stream.tokens, stream.longest) == (0.5, 5, pytest.approx(0.2))
    assert stream.decode == pytest.approx(4 / 0.3)


@pytest.mark.parametrize("times", [(), (0.1, 0.2), (0.1, 0.1, 0.1)])
def test_a_stream_without_three_events_has_no_rate(times: tuple[float, ...]) -> None:
    assert measure(said("abc", times=times)) is None


def test_throughput_counts_while_all_lanes_are_busy() -> None:
    lanes = [said("x", began=begin, seconds=1.0, times=(0.1, 0.5, 0.9)) for begin in (0.0, 0.05)]
    assert throughput(lanes, 2) == pytest.approx(3 / 0.75)
