"""Find the phase of an engine's life that its log lines show, by the table of milestones in `knowledge/phases`.

`launcher.run.progress` decides whether a phase takes too long: that needs a clock and evidence from the host.
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
    """One phase of an engine's life."""

    id: str  # one of catalog.PHASES
    title: str
    order: int
    patience: float  # seconds of silence that are still normal
    doing: str  # what the engine does in this phase, for users who wait
    starts: tuple[str, ...]  # regexes of the lines that begin the phase
    shown_by: tuple[str, ...] = ()  # regexes of lines that show the phase in a log that begins after its first line
    words: tuple[str, ...] = ()  # each line that these regexes match contains one of them; empty: not computed


class Milestone(Struct, frozen=True, kw_only=True):
    """A line that began a phase."""

    phase: str
    line: int
    time: str


def load(root: Path = KNOWLEDGE) -> tuple[Phase, ...]:
    """Return every phase in order. Raises YamlError."""
    loaded = []
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
        loaded.append(phase)
    return tuple(sorted(loaded, key=lambda phase: phase.order))


def _patterns(node: Node) -> tuple[str, ...]:
    for item in node.sequence():
        try:
            compile_line(item.text())
        except ValueError as error:
            raise item.fail(str(error)) from error
    return tuple(item.text() for item in node.sequence())


@cache
def all_phases() -> tuple[Phase, ...]:
    """Return the phases of the knowledge that ships with this program."""
    return load()


def phase_of(text: str, phases: Iterable[Phase]) -> Phase | None:
    """Return the phase that a line begins; None for ordinary lines."""
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
    """Return the lines that began a phase, in order. The load of a draft model appears as a step back to `weights`."""
    words = tuple(word for phase in phases for word in phase.words) if all(phase.words for phase in phases) else ("",)
    reached: list[Milestone] = []
    for line in lines:
        if not any(word in line.text for word in words):
            continue
        current = reached[-1].phase if reached else ""
        phase = phase_of(line.text, phases) or (None if current else _shown(line.text, phases))
        again = (
            phase is not None and phase.id == "args" and current not in ("", "import")
        )  # each rank repeats this line
        if phase and phase.id != current and not again:
            reached.append(Milestone(phase=phase.id, line=line.number, time=line.time))
    return tuple(reached)


def phase_at(reached: tuple[Milestone, ...], line: int) -> str:
    """Return the phase in which a line was printed; empty before the first milestone."""
    return next((item.phase for item in reversed(reached) if item.line <= line), "")
