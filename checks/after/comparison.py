"""Compare two stored validations of the same model: what got worse, and with what confidence.

Works on stored documents (`checks.after.validation.as_dict`) only and sends no requests. Each probe's own comparison
with a baseline is reused, so a comparison and a validation judge alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from checks.after.probes import acceptance, accuracy, fingerprint, speed
from checks.after.probes.context import Baseline, Context, Server, parse_baseline
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import verdict
from checks.after.probes.expect import NO_EXPECTATIONS, AccuracyExpect, Expect, or_default
from checks.after.probes.registry import probes
from checks.vocabulary import Outcome, Verdict


class Compared(Struct, frozen=True, kw_only=True):
    """The comparison: one verdict for each probe that has samples in both validations, or whose outcome changed."""

    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...] = ()  # what limits the comparison, such as different models or engine releases

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of all verdicts; SKIP when there was nothing to compare."""
        outcomes = {item.outcome for item in self.verdicts}
        order = (Outcome.FAIL, Outcome.ERROR, Outcome.INCONCLUSIVE, Outcome.PASS)
        return next((outcome for outcome in order if outcome in outcomes), Outcome.SKIP)


def compare(before: Mapping[str, Any], now: Mapping[str, Any], expect: Expect = NO_EXPECTATIONS) -> Compared:
    """Compare the stored validation `now` with `before`, using the margins in a profile's `expect`."""
    base, later = parse_baseline(before), parse_baseline(now)
    if base is None or later is None:
        return Compared(verdicts=(), notes=("one of the two validations is empty",))
    context = Context(server=Server(), expect=expect, baseline=base)
    outcomes = _outcomes(before), _outcomes(now)
    verdicts = []
    for probe in probes():
        compared = _samples(probe, context, base, later) or _changed(probe, *outcomes)
        if compared is not None:
            verdicts.append(compared)
    return Compared(verdicts=tuple(verdicts), notes=tuple(_notes(before, now)))


def _samples(probe: Probe, context: Context, base: Baseline, later: Baseline) -> Verdict | None:
    old, new = base.samples.get(probe.id), later.samples.get(probe.id)
    if not old or not new:
        return None
    match probe.kind:
        case "accuracy":
            margin = or_default(
                context.expect.accuracy.get(probe.text("set"), AccuracyExpect()).margin, accuracy.MARGIN
            )
            before, right = ([bool(item) for item in part.get("right", ())] for part in (old, new))
            outcome, message = accuracy.against(before, right, margin)
            return verdict(probe.id, outcome, f"{sum(right)} of {len(right)} correct; {message}")
        case "speed":
            return _speed(probe, context, new)
        case "speculation":
            length = mean(new["accept_length"])
            outcome, message = acceptance.against(old["accept_length"], length, f"accept length {length:.2f}")
            return verdict(probe.id, outcome, message, accept_length=round(length, 3))
        case "fingerprint":
            rows = [fingerprint.stored_rows(part) for part in (old, new)]
            return fingerprint.judge_rows(probe, context, *rows)
        case "greedy-baseline":
            count = sum(1 for name in old if name.startswith("ids_"))
            answers = [fingerprint.stored_answers(part, count) for part in (old, new)]
            return replace(fingerprint.judge_answers(probe, *answers), evidence=())
    return None


def _speed(probe: Probe, context: Context, new: Mapping[str, tuple[float, ...]]) -> Verdict | None:
    results = speed.comparisons(probe, context, new)
    if not results:
        return None
    worst = min((result.outcome for result in results), key=speed.ORDER.index)
    figures = {name: value for result in results for name, value in result.figures.items()}
    message = "; ".join(result.message for result in results if result.outcome is worst)
    return verdict(probe.id, worst, message, **figures)


def _changed(probe: Probe, before: Mapping[str, str], now: Mapping[str, str]) -> Verdict | None:
    """Compare outcomes where a probe stores no samples; only a lost pass or a new pass is reported."""
    old, new = before.get(probe.id), now.get(probe.id)
    if old == new or Outcome.PASS not in (old, new) or old is None or new is None:
        return None
    outcome = Outcome.PASS if new == Outcome.PASS else Outcome.FAIL if new == Outcome.FAIL else Outcome.INCONCLUSIVE
    return verdict(probe.id, outcome, f"was {old}, is {new}")


def _outcomes(data: Mapping[str, Any]) -> dict[str, str]:
    return {str(item["id"]): str(item["outcome"]) for item in data.get("verdicts") or ()}


def _notes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    notes = []
    for key, word in (("model", "models"), ("engine", "engine releases"), ("suite", "suites")):
        if before.get(key) and now.get(key) and before[key] != now[key]:
            notes.append(f"different {word}: {before[key]}, then {now[key]}")
    return notes
