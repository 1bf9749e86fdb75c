"""Compare two validations of one model, figure by figure: better, same, worse or inconclusive. Pure.

Accuracy is compared on the same questions, draft acceptance and speed as ratios of medians, each with its interval.
`same` means that a loss larger than the margin is ruled out; a figure too noisy for any of the three is inconclusive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from checks.after.measures.intervals import Interval, difference, paired_difference, ratio_interval
from launcher.gate.report import Comparison

BETTER, SAME, WORSE, INCONCLUSIVE = "better", "same", "worse", "inconclusive"
FIRST_TOKEN_MARGIN = 0.25  # the latency to a server varies more than servers do
_LEFT_OUT = ("gap",)  # the same information as the decode rate


def compare(old: Mapping[str, Any], new: Mapping[str, Any], margin: float) -> tuple[Comparison, ...]:
    """Compare every figure that both validations contain, after the verdicts of the probes.

    Both have the form of `checks.after.validation.as_dict`; `margin` is the tolerated loss as a share.
    """
    comparisons = list(_probes(old, new))
    before, after = old.get("samples") or {}, new.get("samples") or {}
    for probe, samples in after.items():
        for name, now in samples.items():
            base = (before.get(probe) or {}).get(name)
            if base and now and name not in _LEFT_OUT:
                comparisons.append(_figure(probe, name, base, now, margin))
    return tuple(comparisons)


def overall(comparisons: Sequence[Comparison]) -> str:
    """Return the overall verdict: worse, else inconclusive, else better, else same. No comparison is inconclusive."""
    verdicts = {item.verdict for item in comparisons}
    for verdict in (WORSE, INCONCLUSIVE, BETTER, SAME):
        if verdict in verdicts:
            return verdict
    return INCONCLUSIVE


def pooled(validations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge several validations of one profile: all samples together, and the worst verdict of each probe."""
    order = ("fail", "error", "inconclusive", "skip", "pass")
    samples: dict[str, dict[str, list[float]]] = {}
    verdicts: dict[str, Mapping[str, Any]] = {}
    for item in validations:
        for probe, parts in (item.get("samples") or {}).items():
            for name, values in parts.items():
                samples.setdefault(probe, {}).setdefault(name, []).extend(values)
        for verdict in item.get("verdicts") or ():
            known = verdicts.get(verdict["id"])
            if known is None or order.index(verdict["outcome"]) < order.index(known["outcome"]):
                verdicts[verdict["id"]] = verdict
    return {"verdicts": list(verdicts.values()), "samples": samples}


def _probes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Comparison]:
    """Probes whose outcome changed or that fail on both sides; probes check the absolute expectations, too."""
    before = {item["id"]: str(item["outcome"]) for item in old.get("verdicts") or ()}
    for item in new.get("verdicts") or ():
        was, now = before.get(item["id"], "skip"), str(item["outcome"])
        if now == "fail" and was != "fail":
            yield Comparison(name=item["id"], verdict=WORSE, message=f"{was} → fail: {item.get('message', '')}")
        elif now == "fail":
            yield Comparison(name=item["id"], verdict=INCONCLUSIVE, message="fails on both sides")
        elif was == "fail" and now == "pass":
            yield Comparison(name=item["id"], verdict=BETTER, message="fail → pass")
        elif now == "error" and was != "error":
            yield Comparison(
                name=item["id"], verdict=INCONCLUSIVE, message=f"the check broke: {item.get('message', '')}"
            )


def _figure(probe: str, name: str, base: Sequence[float], now: Sequence[float], margin: float) -> Comparison:
    if name == "right":
        return _accuracy(probe, base, now, margin)
    if name == "first":
        return _ratio(f"{probe} first token", now, base, max(margin, FIRST_TOKEN_MARGIN))
    return _ratio(f"{probe} {name.replace('_', ' ')}", base, now, margin)


def _accuracy(probe: str, base: Sequence[float], now: Sequence[float], margin: float) -> Comparison:
    before, after = [bool(item) for item in base], [bool(item) for item in now]
    if len(before) == len(after):
        change = paired_difference(before, after)
    else:
        change = difference((sum(before), len(before)), (sum(after), len(after)))
    text = f"{change.value:+.1%} ({change.low:+.1%} to {change.high:+.1%}), {len(after)} questions"
    return _judged(probe, change, margin, text)


def _ratio(name: str, base: Iterable[float], now: Iterable[float], margin: float) -> Comparison:
    """The ratio of `now` to `base`. For times the caller swaps the two, so that a higher ratio is always better."""
    first, second = list(base), list(now)
    if not all(value > 0 for value in (*first, *second)):
        return Comparison(name=name, verdict=INCONCLUSIVE, message="a measurement is zero, so there is no ratio")
    ratio = ratio_interval(first, second)
    change = Interval(value=ratio.value - 1, low=ratio.low - 1, high=ratio.high - 1)
    text = f"{change.value:+.1%} ({change.low:+.1%} to {change.high:+.1%}), {len(second)} measurements"
    return _judged(name, change, margin, text)


def _judged(name: str, change: Interval, margin: float, text: str) -> Comparison:
    if change.low > 0 and change.value >= margin:
        verdict = BETTER
    elif change.low > -margin:
        verdict = SAME
    elif change.high < 0 and change.value <= -margin:
        verdict = WORSE
    else:
        verdict, text = INCONCLUSIVE, f"{text}: a loss of {margin:.0%} is not ruled out"
    figures = {"value": round(change.value, 4), "low": round(change.low, 4), "high": min(round(change.high, 4), 1e9)}
    return Comparison(name=name, verdict=verdict, message=text, figures=figures)
