"""Speed is a median with an interval; what the noise hides is not judged."""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose
from typing import Any

import pytest
from msgspec.structs import replace

from checks.after.probes.context import Baseline, Context, Server
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Measured
from checks.after.probes.expectations import parse_expect
from checks.after.probes.speed import bundle_sizes, compare, judge, speed
from checks.after.probes.streams import measure, throughput
from checks.vocabulary import Outcome, Verdict

PROBE = Probe(id="speed", title="", why="", kind="speed", level="good-enough", suites=("full",))
SPEED = replace(PROBE, params={"tokens": 64, "repeats": 6, "margin": 0.05})
QUIET = (100.0, 101.0, 99.0, 100.5, 99.5, 100.2)
NOISY = (100.0, 60.0, 140.0, 80.0, 120.0, 95.0)


def streamed(gaps: list[float], first: float = 0.2, step: int = 1) -> Answer:
    times = [first]
    for gap in gaps:
        times.append(times[-1] + gap)
    counts = tuple(1 + index * step for index in range(len(times)))
    return Answer(
        path="/generate", status=200, times=tuple(times), counts=counts, seconds=times[-1], completion_tokens=counts[-1]
    )


def judged(
    decode: tuple[float, ...],
    *,
    before: tuple[float, ...] | None = None,
    answers: list[Answer] | None = None,
    **speed: Any,
) -> Verdict:
    samples = {"decode": decode, "first": (0.2,) * len(decode), "gap": (0.01,) * len(decode)}
    stored = {"speed": {"decode": before}} if before else {}
    context = Context(
        server=Server(running=8),
        expect=parse_expect({"speed": speed}),
        baseline=Baseline(samples=stored) if before else None,
    )
    result = judge(PROBE, context, samples, answers or [streamed([0.01] * 20)])
    return result.verdict if isinstance(result, Measured) else result


def test_the_decode_rate_leaves_out_the_time_to_the_first_token() -> None:
    stream = measure(streamed([0.01] * 50, first=3.0))
    assert stream is not None
    assert isclose(stream.decode, 100.0)
    assert stream.first == 3.0


def test_events_of_several_tokens_are_counted_as_tokens() -> None:
    stream = measure(streamed([0.04] * 20, step=4))
    assert stream is not None
    assert isclose(stream.decode, 100.0)
    assert isclose(stream.gap, 0.01)


def test_two_events_are_no_measurement() -> None:
    assert measure(streamed([0.01])) is None


def sent(answer: Answer, began: float) -> Answer:
    return replace(answer, began=began)


def test_throughput_is_that_of_the_time_in_which_all_lanes_are_busy() -> None:
    # two lanes of two answers, 100 tok/s each; the second lane begins 0.3 s late, and the first is through before it
    one = streamed([0.01] * 100, first=0.1)
    lanes = [sent(one, 10.0), sent(one, 10.3), sent(one, 11.1), sent(one, 11.4)]
    rate = throughput(lanes, 2)
    assert 180 < rate < 200  # two lanes less the 0.1 s in which each waits for its second answer's first token
    stretched = [sent(one, 10.0), sent(one, 10.3), sent(one, 11.1), sent(one, 14.0)]
    assert throughput(stretched[:2], 2) > 190


def test_events_that_bring_several_tokens_count_as_many() -> None:
    one = streamed([0.04] * 50, step=4)
    assert isclose(throughput([sent(one, 0.0), sent(one, 0.0)], 2), 200.0)


def test_lanes_that_never_met_are_measured_over_all_of_their_time() -> None:
    one = streamed([0.01] * 99, first=0.01)
    assert isclose(throughput([sent(one, 0.0), sent(one, 5.0)], 2), 200 / 6.0)


def test_without_tokens_there_is_no_throughput() -> None:
    assert throughput([Answer(path="", status=200)], 1) == throughput([], 2) == 0.0


def test_no_bundle_is_larger_than_what_the_server_decodes_together() -> None:
    context = Context(server=Server(running=6), expect=parse_expect({"speed": {"concurrency": [1, 4, 64]}}))
    assert bundle_sizes(context) == (4, 6)


def test_an_equal_series_passes_and_names_the_change_it_could_have_seen() -> None:
    result = compare("decode", QUIET, QUIET, 0.05)
    assert result.outcome is Outcome.PASS
    assert 0 < float(result.figures["decode_detectable"]) < 0.05


def test_a_tenth_less_is_slower() -> None:
    assert compare("decode", QUIET, tuple(value * 0.9 for value in QUIET), 0.05).outcome is Outcome.FAIL


def test_noise_above_the_margin_is_not_judged() -> None:
    result = compare("decode", NOISY, tuple(value * 0.95 for value in NOISY), 0.05)
    assert result.outcome is Outcome.INCONCLUSIVE
    assert "noise exceeds the margin" in result.message
    assert "repeats would decide" in result.message


def test_a_clear_gain_passes_in_spite_of_noise() -> None:
    assert compare("decode", NOISY, tuple(value * 3 for value in NOISY), 0.05).outcome is Outcome.PASS


def test_a_latency_is_better_when_it_is_less() -> None:
    base, now = (0.2, 0.21, 0.19, 0.2), (0.4, 0.41, 0.39, 0.4)
    assert compare("first", base, now, 0.25, less_is_better=True).outcome is Outcome.FAIL
    assert compare("first", now, base, 0.25, less_is_better=True).outcome is Outcome.PASS


def drifting(start: float, count: int) -> tuple[float, ...]:
    return tuple(start * 0.97**index for index in range(count))


def test_pairs_see_through_a_drift_that_hides_the_difference() -> None:
    base, now = drifting(100, 8), tuple(value * 0.9 for value in drifting(100, 8))
    assert compare("decode", base, now, 0.05).outcome is Outcome.INCONCLUSIVE
    assert compare("decode", base, now, 0.05, pairs=True).outcome is Outcome.FAIL
    assert compare("decode", base, base, 0.05, pairs=True).outcome is Outcome.PASS


def played(rate: Mapping[bool, float], broken: bool | None = None) -> tuple[Verdict, list[bool]]:
    """The speed probe against two servers of these rates; and to whom each wave went."""
    steps, order = speed(SPEED, Context(server=Server(running=4), live_baseline=True)), []
    try:
        wave = next(steps)
        while True:
            [to] = {ask.baseline for ask in wave}
            order.append(to)
            good = streamed([1 / rate[to]] * 20)
            bad = Answer(path="/generate", status=500)
            wave = steps.send([bad if to is broken else good for _ in wave])
    except StopIteration as end:
        result = end.value
    return (result.verdict if isinstance(result, Measured) else result), order


def test_a_live_baseline_is_measured_in_turn_and_who_begins_changes() -> None:
    verdict, order = played({False: 100.0, True: 100.0})
    assert verdict.outcome is Outcome.PASS
    assert order[2:10] == [False, True, True, False, False, True, True, False]
    assert order.count(True) == order.count(False)


def test_slower_than_the_live_baseline_fails() -> None:
    assert played({False: 80.0, True: 100.0})[0].outcome is Outcome.FAIL


def test_a_baseline_server_that_fails_leaves_nothing_to_compare_with() -> None:
    verdict, _ = played({False: 100.0, True: 100.0}, broken=True)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "on the baseline server" in verdict.message
    assert played({False: 100.0, True: 100.0}, broken=False)[0].outcome is Outcome.FAIL


def test_without_wish_or_baseline_the_speed_is_recorded_only() -> None:
    verdict = judged(QUIET)
    assert verdict.outcome is Outcome.SKIP
    assert verdict.figures["decode"] == pytest.approx(100.1)


def test_a_wish_decides() -> None:
    assert judged(QUIET, decode_at_least=90).outcome is Outcome.PASS
    assert judged(QUIET, decode_at_least=120).outcome is Outcome.FAIL
    assert judged(NOISY, decode_at_least=100).outcome is Outcome.INCONCLUSIVE


def test_slower_than_the_baseline_fails() -> None:
    assert judged(tuple(value * 0.8 for value in QUIET), before=QUIET).outcome is Outcome.FAIL


def test_a_drip_below_the_floor_fails() -> None:
    assert judged((0.4, 0.41, 0.4)).outcome is Outcome.FAIL


def test_streams_that_stand_still_in_the_middle_fail() -> None:
    halting = streamed([0.01] * 10 + [3.0] + [0.01] * 10)
    verdict = judged(QUIET, answers=[halting, halting])
    assert verdict.outcome is Outcome.FAIL
    assert "stall between tokens" in verdict.message
