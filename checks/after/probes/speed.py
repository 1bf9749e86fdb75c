"""Measure the speed (decode rate, time to first token, token gaps, throughput); judge it against limits and a baseline.

Measured from streams after a discarded warm-up. Every figure is a median with its interval, every comparison names
the smallest change it could detect, and a comparison is inconclusive when the noise exceeds the margin. A live baseline
server is measured in turn, pair by pair, so that drift common to both servers cancels out.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from math import ceil, inf
from statistics import median

from msgspec import Struct, field
from msgspec.structs import replace

from checks.after.measures.intervals import Interval, median_interval, paired_ratio_interval, ratio_interval
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Measured, Script, Wave, failed_requests, quote, verdict
from checks.after.probes.expect import or_default
from checks.after.probes.requests import generate
from checks.after.probes.streams import measure, throughput
from checks.after.probes.texts import long_text
from checks.vocabulary import Outcome, Verdict

_AT_ONCE = 0.3  # seconds: a whole answer within this time may be one read of a busy machine
NEVER_NOTICED = 0.02  # seconds of the first token, below which a difference is noise of the path
ORDER = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS, Outcome.SKIP)


class Comparison(Struct, frozen=True, kw_only=True):
    """One measurement compared with its limit or its baseline."""

    outcome: Outcome
    message: str
    figures: Mapping[str, float | str] = field(default_factory=dict)


def speed(probe: Probe, context: Context) -> Script:
    """Warm up, then measure single streams in sequence, then concurrent streams at several concurrencies."""
    tokens = or_default(context.expect.speed.tokens, probe.count("tokens", 64))
    repeats = or_default(context.expect.speed.repeats, probe.count("repeats", 5))
    servers = (False, True) if context.live_baseline else (False,)  # True stands for the live baseline server
    warm = yield from _in_turn(servers, 1, lambda _: [_stream(0, 16)])
    if bad := _failed(probe, warm):
        return bad
    singles = yield from _in_turn(servers, repeats, lambda number: [_stream(100 + number, tokens)])
    if bad := _failed(probe, singles):
        return bad
    samples = {server: _single_samples([answer for [answer] in singles[server]]) for server in servers}
    for size in bundle_sizes(context):
        yield from _in_turn(servers, 1, _bundle(size, 16, 200, rounds=1))  # warm-up: compiles and captures this size
        bundles = yield from _in_turn(servers, max(3, repeats - 2), _bundle(size, tokens, 1000))
        if bad := _failed(probe, bundles):
            return bad
        for server in servers:
            samples[server][f"throughput_{size}"] = tuple(throughput(bundle, size) for bundle in bundles[server])
    return judge(probe, context, samples[False], [answer for [answer] in singles[False]], samples.get(True))


def bundle_sizes(context: Context) -> tuple[int, ...]:
    """Return the concurrencies to measure: the profile's, else 4, 16 and the servers' limit; never above that limit."""
    most = min(context.concurrency, context.live_running or context.concurrency)
    expected = context.expect.speed.concurrency or (4, 16, most)
    return tuple(sorted({min(size, most) for size in expected} - {1}))


def judge(
    probe: Probe,
    context: Context,
    samples: Mapping[str, tuple[float, ...]],
    singles: Sequence[Answer],
    live: Mapping[str, tuple[float, ...]] | None = None,
) -> Measured | Verdict:
    """Return the verdict on a set of samples: the worst result against the limits and the baseline (live or stored).

    SKIP when there is neither a limit nor a baseline: the samples are only recorded.
    """
    if not samples.get("decode"):
        return _in_one_piece(probe, singles)
    figures = _figures(samples)
    results = [*_expected(context, samples), *comparisons(probe, context, samples, live), *_silences(singles)]
    decode = median_interval(samples["decode"])
    shown = f"decode {_shown(decode, 'tok/s')}, first token after {median(samples['first']) * 1000:.0f} ms"
    if not results:
        message = f"{shown}; recorded only: there is no baseline and no limit to compare it with"
        return Measured(verdict=verdict(probe.id, Outcome.SKIP, message, **figures), samples=dict(samples))
    worst = min((result.outcome for result in results), key=ORDER.index)
    notes = [result.message for result in results if result.outcome is worst]
    for result in results:
        figures.update(result.figures)
    return Measured(verdict=verdict(probe.id, worst, f"{shown}; {'; '.join(notes)}", **figures), samples=dict(samples))


def _in_one_piece(probe: Probe, singles: Sequence[Answer]) -> Verdict:
    """Judge streams without the three events that a decode rate needs: they come in one piece, or at once."""
    shown = [quote(answer) for answer in singles[:2]]
    waited = max((answer.times[0] for answer in singles if answer.times), default=0.0)
    if waited < _AT_ONCE:
        message = f"whole streams arrive within {waited * 1000:.0f} ms, too fast to measure a rate"
        return verdict(probe.id, Outcome.INCONCLUSIVE, message, shown)
    message = f"streams come in one piece after {waited:.1f} s: a proxy buffers them, or the server does not stream"
    return verdict(probe.id, Outcome.FAIL, message, shown)


def comparisons(
    probe: Probe,
    context: Context,
    samples: Mapping[str, tuple[float, ...]],
    live: Mapping[str, tuple[float, ...]] | None = None,
) -> list[Comparison]:
    """Return the comparison of every measurement that the baseline also has."""
    margin = or_default(context.expect.speed.margin, probe.number("margin", 0.05))
    results = []
    for name, now in samples.items():
        base = live.get(name, ()) if live is not None else context.samples(probe.id, name)
        if not base or name == "gap":  # the gap measures the same as the decode rate
            continue
        pairs = live is not None and len(base) == len(now)
        if name == "first":
            # the network path (tunnel, other machine) varies more than servers do: only large changes are meaningful
            if median(now) - median(base) < NEVER_NOTICED:
                message = f"first token within {NEVER_NOTICED * 1000:.0f} ms of the baseline"
                results.append(Comparison(outcome=Outcome.PASS, message=message))
                continue
            results.append(compare("first token", base, now, max(margin, 0.25), less_is_better=True, pairs=pairs))
        else:
            results.append(compare(name, base, now, margin, pairs=pairs))
    return results


def compare(
    name: str,
    base: Sequence[float],
    now: Sequence[float],
    margin: float,
    *,
    less_is_better: bool = False,
    pairs: bool = False,
) -> Comparison:
    """Compare one measurement with its baseline. `margin` is the accepted loss, as a share (0.05 = 5 %).

    `pairs` means that the samples were measured in turn, so that sample i is compared with sample i of the baseline.
    """
    ratio = paired_ratio_interval if pairs else ratio_interval
    change = ratio(now, base) if less_is_better else ratio(base, now)
    noise = change.half_width
    figures = {f"{name}_ratio": round(change.value, 4), f"{name}_detectable": round(noise, 4) if noise < inf else "inf"}
    shown = f"{name} {change.value - 1:+.1%} against the baseline ({change.low - 1:+.1%} to {change.high - 1:+.1%})"
    if change.low > 1 - margin:
        return Comparison(outcome=Outcome.PASS, message=shown, figures=figures)
    if change.high < 1 - margin:
        return Comparison(outcome=Outcome.FAIL, message=f"{shown}: slower", figures=figures)
    if noise > margin:
        advice = "" if noise == inf else f"; about {ceil(len(now) * (noise / margin) ** 2)} repeats would decide"
        message = f"{shown}: the noise exceeds the margin of {margin:.0%}{advice}"
        return Comparison(outcome=Outcome.INCONCLUSIVE, message=message, figures=figures)
    message = f"{shown}: too close to the margin of {margin:.0%} to decide"
    return Comparison(outcome=Outcome.INCONCLUSIVE, message=message, figures=figures)


def _in_turn(
    servers: Sequence[bool], rounds: int, wave: Callable[[int], Wave]
) -> Generator[Wave, Sequence[Answer], dict[bool, list[Sequence[Answer]]]]:
    """Send each wave to each server in turn; the server that goes first alternates between rounds."""
    answers: dict[bool, list[Sequence[Answer]]] = {server: [] for server in servers}
    for number in range(rounds):
        for server in servers if number % 2 == 0 else tuple(reversed(servers)):
            answers[server].append((yield [replace(ask, baseline=server) for ask in wave(number)]))
    return answers


def _failed(probe: Probe, answers: Mapping[bool, Sequence[Sequence[Answer]]]) -> Verdict | None:
    """Return FAIL for a failed request under test, INCONCLUSIVE for one to the live baseline, else None."""
    for server, waves in answers.items():
        bad = failed_requests(probe.id, [answer for wave in waves for answer in wave])
        if bad and server:
            return replace(bad, outcome=Outcome.INCONCLUSIVE, message=f"on the baseline server: {bad.message}")
        if bad:
            return bad
    return None


def _bundle(size: int, tokens: int, seeds: int, rounds: int = 2) -> Callable[[int], Wave]:
    """Return waves of `size` concurrent streams; as in serving, the end of one answer starts the next request."""
    return lambda number: [
        replace(_stream(seeds * (number + 1) + row, tokens), lane=row % size) for row in range(size * rounds)
    ]


def _stream(seed: int, tokens: int) -> Ask:
    # a new text each time, because the radix cache would shorten the time to first token
    return generate(f"Diary {seed}. " + long_text(60, seed), tokens, stream=True, ignore_eos=True)


def _single_samples(singles: Sequence[Answer]) -> dict[str, tuple[float, ...]]:
    streams = [stream for answer in singles if (stream := measure(answer))]
    return {
        "decode": tuple(stream.decode for stream in streams),
        "first": tuple(stream.first for stream in streams),
        "gap": tuple(stream.gap for stream in streams),
    }


def _figures(samples: Mapping[str, tuple[float, ...]]) -> dict[str, float | str]:
    figures: dict[str, float | str] = {}
    for name, values in samples.items():
        interval = median_interval(values)
        figures[name] = round(interval.value, 5)
        figures[f"{name}_low"], figures[f"{name}_high"] = _finite(interval.low), _finite(interval.high)
    return figures


def _expected(context: Context, samples: Mapping[str, tuple[float, ...]]) -> list[Comparison]:
    results = []
    decode, first = median_interval(samples["decode"]), median_interval(samples["first"])
    minimum = context.expect.speed.floor
    if decode.value < minimum:
        message = f"{decode.value:.2f} tok/s is below the minimum decode rate of {minimum:g}"
        results.append(Comparison(outcome=Outcome.FAIL, message=message))
    if (least := context.expect.speed.decode_at_least) is not None:
        outcome = _at_least(decode, least)
        results.append(Comparison(outcome=outcome, message=f"expected at least {least:g} tok/s"))
    if (most := context.expect.speed.ttft_at_most) is not None:
        outcome = _at_least(Interval(value=-first.value, low=-first.high, high=-first.low), -most)
        results.append(Comparison(outcome=outcome, message=f"expected the first token within {most:g} s"))
    return results


def _at_least(interval: Interval, least: float) -> Outcome:
    if interval.low >= least:
        return Outcome.PASS
    return Outcome.FAIL if interval.high < least else Outcome.INCONCLUSIVE


def _silences(singles: Sequence[Answer]) -> list[Comparison]:
    streams = [stream for answer in singles if (stream := measure(answer))]
    stalled = [stream for stream in streams if stream.longest > 1.0 and stream.longest > 20 * stream.gap]
    if len(stalled) * 2 <= len(streams):
        return []
    longest = max(stream.longest for stream in stalled)
    message = f"most streams stall between tokens, the longest for {longest:.1f} s"
    return [Comparison(outcome=Outcome.FAIL, message=message)]


def _shown(interval: Interval, unit: str) -> str:
    if interval.half_width == inf:
        return f"{interval.value:.1f} {unit} (measured once)"
    return f"{interval.value:.1f} {unit} ({interval.low:.1f} to {interval.high:.1f})"


def _finite(value: float) -> float | str:
    return round(value, 5) if abs(value) < inf else "inf"
