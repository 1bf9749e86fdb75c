"""The report of the gate as lines for a terminal: affected profiles, blocking remarks, trials, verdict."""

from __future__ import annotations

from collections.abc import Iterator

from launcher.gate.outputs.words import affected_text, difference_text, headline, remark_text, targets_text
from launcher.gate.report import Affected, Remark, Report, Status, Trial

_LABELS = {
    Status.FAIL: "FAIL", Status.INCONCLUSIVE: "?", Status.ACCEPTED: "accepted", Status.KNOWN: "known",
    Status.EXPECTED: "expected", Status.NOTE: "note",
}  # fmt: skip


def lines(report: Report) -> Iterator[str]:
    """Yield the whole report. The verdict is the last line, next to the prompt."""
    base = f"{report.base[:12]} ({report.base_note})" if report.base else report.base_note
    yield f"base      {base}"
    for item in report.affected:
        yield from _affected(item)
    for remark in report.remarks:
        yield from _remark(remark)
    for replayed in report.replayed:
        words = f"flipped: {', '.join(replayed.flipped)}" if replayed.flipped else "same verdicts"
        yield f"replayed  {replayed.path}: {words}{''.join(f'; {note}' for note in replayed.notes)}"
    for trial in report.trials:
        yield from trial_lines(trial)
    yield f"verdict   {headline(report)}"


def trial_lines(trial: Trial) -> Iterator[str]:
    """Yield the lines of a trial: the old profile compared with the new one on a host."""
    used = f"{trial.gpu_minutes:.1f} GPU minutes"
    yield f"trial     {trial.profile} on {trial.host}: {trial.verdict}; {trial.message} ({used})"
    for item in trial.comparisons:
        yield f"            {item.name:<24} {item.verdict:<12} {item.message}"


def _affected(item: Affected) -> Iterator[str]:
    yield f"affected  {affected_text(item)}"
    for part in item.differences:
        yield f"            {difference_text(part)}"
    for effect in item.effects:
        yield f"            command line in {targets_text(effect.releases)}:"
        yield from (f"              - {word}" for word in effect.removed)
        yield from (f"              + {word}" for word in effect.added)


def _remark(item: Remark) -> Iterator[str]:
    yield f"{_LABELS[item.status]:<9} {item.place}: {remark_text(item)}"
    if item.status in (Status.FAIL, Status.INCONCLUSIVE):
        yield from (f"            remedy: {text}" for text in item.remedies[:3])
