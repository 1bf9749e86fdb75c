"""Two validations of the same model → better, same, worse or inconclusive, figure by figure. Pure.

Accuracy by the same questions, acceptance and speed by ratios of medians, each with its interval. `same` means that a
loss larger than the margin is ruled out; where the noise does not allow any of the three, it is inconclusive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from checks.after.measures.intervals import Interval, difference, paired_difference, ratio_interval
from launcher.gate.report import Comparison

BETTER, SAME, WORSE, INCONCLUSIVE = "better", "same", "worse", "inconclusive"
FIRST_TOKEN_MARGIN = 0.25  # the way to the server differs more than servers do
_LEFT_OUT = ("gap",)  # says the same as the decode rate


def compare(old: Mapping[str, Any], new: Mapping[str, Any], margin: float) -> tuple[Comparison, ...]:
    """Every figure that both validations have (`checks.after.validation.as_dict`), verdicts of probes first."""
    found = list(_probes(old, new))
    before, after = old.get("samples") or {}, new.get("samples") or {}
    for probe, samples in after.items():
        for name, now in samples.items():
            base = (before.get(probe) or {}).get(name)
            if base and now and name not in _LEFT_OUT:
                found.append(_figure(probe, name, base, now, margin))
    return tuple(found)


def overall(comparisons: Sequence[Comparison]) -> str:
    """The worst that is certain, then what is not, then a gain. Nothing compared is inconclusive."""
    verdicts = {item.verdict for item in comparisons}
    for verdict in (WORSE, INCONCLUSIVE, BETTER, SAME):
        if verdict in verdicts:
            return verdict
    return INCONCLUSIVE


def pooled(validations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several validations of one profile as one: samples side by side, of every probe the worst verdict."""
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
    """Probes whose outcome differs; a comparison with an absolute expectation is one of them."""
    before = {item["id"]: str(item["outcome"]) for item in old.get("verdicts") or ()}
    for item in new.get("verdicts") or ():
        was, now = before.get(item["id"], "skip"), str(item["outcome"])
        if now == "fail" and was != "fail":
            yield Comparison(name=item["id"], verdict=WORSE, message=f"{was} → fail: {item.get('message', '')}")
        elif now == "fail":
            yield Comparison(name=item["id"], verdict=INCONCLUSIVE, message="fails with both")
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
    shown = f"{change.value:+.1%} ({change.low:+.1%} to {change.high:+.1%}), {len(after)} questions"
    return _judged(probe, change, margin, shown)


def _ratio(name: str, base: Iterable[float], now: Iterable[float], margin: float) -> Comparison:
    """`now` over `base`; for times the caller gives them the other way round, so that more is always better."""
    first, second = list(base), list(now)
    if not all(value > 0 for value in (*first, *second)):
        return Comparison(name=name, verdict=INCONCLUSIVE, message="a measurement of zero")
    found = ratio_interval(first, second)
    change = Interval(value=found.value - 1, low=found.low - 1, high=found.high - 1)
    shown = f"{change.value:+.1%} ({change.low:+.1%} to {change.high:+.1%}), {len(second)} measurements"
    return _judged(name, change, margin, shown)


def _judged(name: str, change: Interval, margin: float, shown: str) -> Comparison:
    if change.low > 0 and change.value >= margin:
        verdict = BETTER
    elif change.low > -margin:
        verdict = SAME
    elif change.high < 0 and change.value <= -margin:
        verdict = WORSE
    else:
        verdict, shown = INCONCLUSIVE, f"{shown}: a loss of {margin:.0%} is not ruled out"
    figures = {"value": round(change.value, 4), "low": round(change.low, 4), "high": min(round(change.high, 4), 1e9)}
    return Comparison(name=name, verdict=verdict, message=shown, figures=figures)
