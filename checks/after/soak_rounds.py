"""Soaking: the rounds that were probed after a validation → one verdict, every failure with its date.

Pure; the rounds are sent by `launcher.flows.validate.soak`. A server that was ready may stop being so: a frozen rank
answers /health with 503 only after long, or never, and the first garbage may come with the thousandth request.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from checks.after.validation import Level, Validation, with_verdicts
from checks.vocabulary import Evidence, Outcome, Verdict

ID = "soak"
SHOWN = 50  # failures that are listed one by one
BAD = (Outcome.FAIL, Outcome.ERROR)


def with_rounds(validation: Validation, rounds: Sequence[Validation], seconds: float) -> Validation:
    """The validation after `seconds` of soaking; a probe that failed in some round is no pass any more."""
    failures = [(item.started, verdict) for item in rounds for verdict in item.verdicts if verdict.outcome in BAD]
    own = {verdict.id: verdict for verdict in validation.verdicts}
    worse: dict[str, Verdict] = {}
    for when, verdict in failures:
        known = own.get(verdict.id)
        if verdict.id not in worse and (known is None or known.outcome not in BAD):
            worse[verdict.id] = replace(verdict, message=f"{when}, while soaking: {verdict.message}")
    return with_verdicts(validation, [*worse.values(), _verdict(rounds, failures, seconds)])


def _verdict(rounds: Sequence[Validation], failures: Sequence[tuple[str, Verdict]], seconds: float) -> Verdict:
    bad = sum(1 for item in rounds if any(verdict.outcome in BAD for verdict in item.verdicts))
    figures: dict[str, float | str] = {"rounds": len(rounds), "failed_rounds": bad, "soaked": round(seconds, 1)}
    if not rounds:
        return Verdict(id=ID, outcome=Outcome.INCONCLUSIVE, message="no round was probed", figures=figures)
    if not failures:
        message = f"{len(rounds)} rounds in {seconds:.0f} s, all well"
        return Verdict(id=ID, outcome=Outcome.PASS, message=message, figures=figures, seconds=seconds)
    when, first = failures[0]
    gone = "; nobody answers any more" if rounds[-1].level is Level.NONE else ""
    return Verdict(
        id=ID,
        outcome=Outcome.FAIL if any(verdict.outcome is Outcome.FAIL for _, verdict in failures) else Outcome.ERROR,
        message=f"{bad} of {len(rounds)} rounds failed, first at {when}: {first.id} ({first.message}){gone}",
        evidence=tuple(Evidence(text=f"{item.id}: {item.message}", time=at) for at, item in failures[:SHOWN]),
        figures=figures,
        seconds=seconds,
    )
