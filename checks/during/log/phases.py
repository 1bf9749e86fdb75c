"""Where in its start an engine is: one milestone table (`knowledge/phases`), lines in, phase out.

Not a judgement on whether a phase takes too long: that needs a clock and evidence from the host
(`launcher.run.progress`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from msgspec import Struct

from checks import KNOWLEDGE
from checks.catalog.entries import PHASES
from checks.catalog.line_patterns import compile_line
from checks.catalog.yaml_reader import Node, read
from checks.during.log.lines import Line


class Phase(Struct, frozen=True, kw_only=True):
    """One stretch of an engine's life."""

    id: str  # one of catalog.PHASES
    title: str
    order: int
    patience: float  # seconds of silence that are still ordinary
    doing: str  # what happens meanwhile, for people who wait
    starts: tuple[str, ...]  # regexes of the lines that begin it
    shown_by: tuple[str, ...] = ()  # regexes of lines that show it where no phase is known yet: the log begins late
    words: tuple[str, ...] = ()  # one of which stands in each of these lines; empty: not worked out


class Milestone(Struct, frozen=True, kw_only=True):
    """A line that began a phase."""

    phase: str
    line: int
    time: str


def load(root: Path = KNOWLEDGE) -> tuple[Phase, ...]:
    """Every phase in order. Raises YamlError."""
    found = []
    for path in sorted((root / "phases").glob("*.yaml")):
        node = read(path, f"phases/{path.name}")
        node.mapping(["title", "order", "patience", "doing", "starts", "shown-by"])
        shown = node.get("shown-by")
        if path.stem not in PHASES:
            raise node.fail(f"`{path.stem}` is not one of {', '.join(PHASES)}")
        phase = Phase(
            id=path.stem,
            title=node.need("title").text(),
            order=int(node.need("order").number()),
            patience=node.need("patience").number(),
            doing=node.need("doing").text(),
            starts=_patterns(node.need("starts")),
            shown_by=_patterns(shown) if shown is not None else (),
        )
        found.append(phase)
    return tuple(sorted(found, key=lambda phase: phase.order))


def _patterns(node: Node) -> tuple[str, ...]:
    for item in node.sequence():
        try:
            compile_line(item.text())
        except ValueError as error:
            raise item.fail(str(error)) from error
    return tuple(item.text() for item in node.sequence())


@cache
def all_phases() -> tuple[Phase, ...]:
    """The phases of the knowledge that comes with this program."""
    return load()


def phase_of(text: str, phases: Iterable[Phase]) -> Phase | None:
    """The phase that a line begins; None for ordinary lines."""
    for phase in phases:
        if any(compile_line(pattern).search(text) for pattern in phase.starts):
            return phase
    return None


def _shown(text: str, phases: Iterable[Phase]) -> Phase | None:
    for phase in phases:
        if any(compile_line(pattern).search(text) for pattern in phase.shown_by):
            return phase
    return None


def milestones(lines: Iterable[Line], phases: tuple[Phase, ...]) -> tuple[Milestone, ...]:
    """The lines that began a phase, in order; a draft model's second round of loading shows as a step back."""
    words = tuple(word for phase in phases for word in phase.words) if all(phase.words for phase in phases) else ("",)
    found: list[Milestone] = []
    for line in lines:
        if not any(word in line.text for word in words):
            continue
        now = found[-1].phase if found else ""
        phase = phase_of(line.text, phases) or (None if now else _shown(line.text, phases))
        again = phase is not None and phase.id == "args" and now not in ("", "import")  # each rank says it once more
        if phase and phase.id != now and not again:
            found.append(Milestone(phase=phase.id, line=line.number, time=line.time))
    return tuple(found)


def phase_at(found: tuple[Milestone, ...], line: int) -> str:
    """The phase that was running when a line was printed; empty before the first milestone."""
    return next((item.phase for item in reversed(found) if item.line <= line), "")
