"""Measure streams: the rate of one, its silences, and the tokens per second of many at once. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from msgspec import Struct

from checks.after.probes.exchange import Answer


class Stream(Struct, frozen=True, kw_only=True):
    """Speed of one streamed answer."""

    decode: float  # tokens per second after the first event
    first: float  # seconds from sending to the first event
    gap: float  # median seconds per token between events
    longest: float  # longest silence between two events, seconds
    tokens: int


def measure(answer: Answer) -> Stream | None:
    """Return the speed of one stream; None when it has fewer than three events."""
    times, counts = answer.times, answer.counts or tuple(range(1, len(answer.times) + 1))
    if len(times) < 3 or times[-1] <= times[0]:
        return None
    gaps = [
        (later - earlier) / max(1, after - before)
        for earlier, later, before, after in zip(times, times[1:], counts, counts[1:], strict=False)
    ]
    silence = max(later - earlier for earlier, later in pairwise(times))
    return Stream(
        decode=(counts[-1] - counts[0]) / (times[-1] - times[0]),
        first=times[0],
        gap=median(gaps),
        longest=silence,
        tokens=counts[-1],
    )


def throughput(answers: Sequence[Answer], concurrency: int) -> float:
    """Return tokens per second while all lanes are busy: from the last lane's first token to the first lane's last.

    Before and after that time, fewer requests run concurrently: with bundles of 8 short answers, including it made a
    difference of 5 % (H200).
    """
    events = [event for answer in answers for event in _arrivals(answer)]
    start = max((_arrivals(answer)[0][0] for answer in answers[:concurrency] if answer.times), default=0.0)
    end = min((_arrivals(answer)[-1][0] for answer in answers[-concurrency:] if answer.times), default=0.0)
    if end <= start:  # one lane finished before another began: use the whole time
        start = min((answer.began for answer in answers), default=0.0)
        end = max((answer.began + answer.seconds for answer in answers), default=0.0)
    tokens = sum(count for when, count in events if start < when <= end)
    return tokens / (end - start) if end > start else 0.0


def _arrivals(answer: Answer) -> list[tuple[float, int]]:
    """Return (time of arrival on the sender's clock, number of tokens) for each event."""
    counts = answer.counts or tuple(range(1, len(answer.times) + 1))
    return [
        (answer.began + when, count - before)
        for when, count, before in zip(answer.times, counts, (0, *counts), strict=False)
    ]
