"""Turn the soak rounds that follow a validation into one verdict that lists every failure with its time.

Pure; `launcher.flows.validate.soak` runs the rounds. A server that was ready may stop being ready: with a frozen rank,
/health returns 503 only after a long time or never, and the first garbage may appear at the thousandth request.
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
    """Return the validation after `seconds` of soaking; a probe that failed in any round no longer passes."""
    failures = [(item.started, verdict) for item in rounds for verdict in item.verdicts if verdict.outcome in BAD]
    before = {verdict.id: verdict for verdict in validation.verdicts}
    worse: dict[str, Verdict] = {}
    for when, verdict in failures:
        earlier = before.get(verdict.id)
        if verdict.id not in worse and (earlier is None or earlier.outcome not in BAD):
            worse[verdict.id] = replace(verdict, message=f"failed at {when}, while soaking: {verdict.message}")
    return with_verdicts(validation, [*worse.values(), _verdict(rounds, failures, seconds)])


def _verdict(rounds: Sequence[Validation], failures: Sequence[tuple[str, Verdict]], seconds: float) -> Verdict:
    bad = sum(1 for item in rounds if any(verdict.outcome in BAD for verdict in item.verdicts))
    figures: dict[str, float | str] = {"rounds": len(rounds), "failed_rounds": bad, "soaked": round(seconds, 1)}
    if not rounds:
        return Verdict(id=ID, outcome=Outcome.INCONCLUSIVE, message="no soak round was run", figures=figures)
    if not failures:
        message = f"all {len(rounds)} rounds in {seconds:.0f} s passed"
        return Verdict(id=ID, outcome=Outcome.PASS, message=message, figures=figures, seconds=seconds)
    when, first = failures[0]
    gone = "; the server no longer responds" if rounds[-1].level is Level.NONE else ""
    return Verdict(
        id=ID,
        outcome=Outcome.FAIL if any(verdict.outcome is Outcome.FAIL for _, verdict in failures) else Outcome.ERROR,
        message=f"{bad} of {len(rounds)} rounds failed, first at {when}: {first.id} ({first.message}){gone}",
        evidence=tuple(Evidence(text=f"{item.id}: {item.message}", time=at) for at, item in failures[:SHOWN]),
        figures=figures,
        seconds=seconds,
    )
