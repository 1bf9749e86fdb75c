"""A Report as Markdown: the step summary of GitHub, or a comment on a merge request."""

from __future__ import annotations

from collections.abc import Iterator

from launcher.gate.outputs.words import difference_text, headline, targets_text
from launcher.gate.report import Affected, Gate, Remark, Replayed, Report, Status, Trial

MARK = "<!-- sglang-launcher gate -->"  # a bot finds its earlier comment by this line
LARGEST = 60_000  # characters; GitHub accepts 65,536 in a comment
_SIGNS = {Gate.PASS: "✅", Gate.FAIL: "❌", Gate.INCONCLUSIVE: "❔"}
_TITLES = {
    Status.FAIL: "Blocking",
    Status.INCONCLUSIVE: "Undecided",
    Status.ACCEPTED: "Accepted",
    Status.KNOWN: "Already on the base",
    Status.NOTE: "Notes",
}


def markdown(report: Report) -> str:
    """Return the whole page, truncated to the length of a comment."""
    text = "\n".join(_lines(report)) + "\n"
    return text if len(text) <= LARGEST else f"{text[:LARGEST]}\n\n… truncated; the job's files have the full report\n"


def _lines(report: Report) -> Iterator[str]:
    yield MARK
    yield f"## {_SIGNS[report.verdict]} launch gate: {_cell(headline(report))}"
    base = f"`{report.base[:12]}`, {report.base_note}" if report.base else report.base_note
    yield f"Tier **{report.tier}**; {_cell(base)}."
    for status, title in _TITLES.items():
        yield from _table(title, report.of(status), folded=status not in (Status.FAIL, Status.INCONCLUSIVE))
    for trial in report.trials:
        yield from _trial(trial)
    if report.replayed:
        yield from _replays(report.replayed)
    if report.affected:
        yield "\n### What changed"
        for item in report.affected:
            yield from _affected(item)


def _table(title: str, remarks: tuple[Remark, ...], *, folded: bool) -> Iterator[str]:
    if not remarks:
        return
    head = f"{title} ({len(remarks)})"
    yield f"\n<details><summary>{head}</summary>\n" if folded else f"\n### {head}\n"
    yield "| where | what | applies to |"
    yield "|---|---|---|"
    for item in remarks:
        remedy = f"<br>→ {_cell(item.remedies[0])}" if item.remedies else ""
        place = f"`{_cell(item.place.path)}:{item.place.line}`"
        what = f"**{_cell(item.rule)}** {_cell(item.message)}{remedy}"
        yield f"| {place} | {what} | {_cell(targets_text(item.targets))} |"
    if folded:
        yield "\n</details>"


def _trial(trial: Trial) -> Iterator[str]:
    yield f"\n### {_cell(trial.profile)} on {_cell(trial.host)}: {trial.verdict}\n"
    yield f"{_cell(trial.message)} ({trial.gpu_minutes:.1f} GPU minutes)\n"
    if trial.comparisons:
        yield "| figure | verdict | |"
        yield "|---|---|---|"
        for item in trial.comparisons:
            yield f"| {_cell(item.name)} | {item.verdict} | {_cell(item.message)} |"


def _replays(replayed: tuple[Replayed, ...]) -> Iterator[str]:
    flipped = [item for item in replayed if item.flipped]
    yield f"\nRecorded runs judged again: {len(replayed)}. Runs whose verdict changed: {len(flipped)}."


def _affected(item: Affected) -> Iterator[str]:
    yield f"\n**{_cell(item.name)}**: {_cell('; '.join(item.reasons))}"
    if item.differences:
        yield "\n```diff"
        yield from (_code(difference_text(part).replace("~", "!", 1)) for part in item.differences)
        yield "```"
    for effect in item.effects:
        yield f"\nCommand line in {targets_text(effect.releases)}:\n\n```diff"
        yield from (_code(f"- {word}") for word in effect.removed)
        yield from (_code(f"+ {word}") for word in effect.added)
        yield "```"


def _cell(text: str) -> str:
    """Escape text of any origin for a table cell or a line: no markup, no mentions, no line breaks."""
    plain = " ".join(text.split())
    for sign in "\\`*_[]<>|":
        plain = plain.replace(sign, f"\\{sign}" if sign not in "<>|" else {"<": "&lt;", ">": "&gt;", "|": "\\|"}[sign])
    return plain.replace("@", "@\u200b")


def _code(text: str) -> str:
    """Escape text for a fenced block: one line that cannot close the fence."""
    return " ".join(text.split()).replace("```", "'''")
