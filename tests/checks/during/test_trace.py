"""Why a cause is named for a log, or is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checks import KNOWLEDGE
from checks.catalog.entries import entry
from checks.during.diagnosis import diagnose
from checks.during.log.scan import scan
from checks.during.log_origins import read_at
from checks.during.reading import read, starts_of
from checks.during.trace import CauseTrace, trace
from checks.lint.entry_faults import facts_beside
from tests.support.paths import CORPUS
from tests.support.shipped import index

NEXTN = CORPUS / "0.5.11-h200" / "nextn-nobuf.log"
CAUSES = KNOWLEDGE / "causes"


def traced(log: Path | bytes, slug: str, known: dict[str, Any] | None = None, engine: str = "") -> CauseTrace:
    data = log if isinstance(log, bytes) else log.read_bytes()
    beside = facts_beside(log) if isinstance(log, Path) else {}
    reading = read(scan([data], index().words), index(), {**beside, **(known or {})}, engine)
    return trace(reading, slug, diagnose(reading))


def test_a_cause_that_is_named_shows_where_each_text_was_found() -> None:
    found = traced(NEXTN, "speculation-without-extra-buffer")
    first = found.patterns[0]
    assert (found.fired, found.sentence) == (True, "It fired: it names the cause.")
    assert first.speaks and [text.lines for text in first.texts] == [(26,)]


def test_a_regex_without_a_match_is_the_reason() -> None:
    found = traced(NEXTN, "kernel-lacks-compute-type")
    assert not found.fired and "no line matches `" in found.sentence
    assert all(not pattern.speaks and pattern.reason for pattern in found.patterns)


def test_a_pattern_for_other_releases_is_reported_as_such() -> None:
    found = traced(NEXTN, "speculation-without-extra-buffer", engine="0.4.10")
    late = traced(NEXTN, "prefix-hit-restores-wrong-state", engine="0.5.23")
    assert found.release == "0.4.10"
    assert "it applies to SGLang <0.5.17, and the log is from 0.5.23" in [pattern.reason for pattern in late.patterns]


def test_a_condition_on_something_unknown_is_the_reason() -> None:
    item = entry("prefix-hit-restores-wrong-state")
    assert item is not None
    found = traced(
        b"x\n", item.id, {"observed": {"kind": "accuracy-drop"}, "flags": {"speculative-algorithm": "NEXTN"}}
    )
    assert found.patterns[0].condition is not None and found.patterns[0].condition.holds is None
    assert "`model.hybrid` is unknown" in found.patterns[0].reason


def rivals() -> Iterator[tuple[Path, str, str]]:
    """(log, named cause, another cause that also speaks on it), of the logs that ship."""
    for path in sorted(CAUSES.glob("*/match-*.log")):
        reading = read(scan([path.read_bytes()], index().words), index(), facts_beside(path))
        found = diagnose(reading)
        if found.cause is None:
            continue
        from checks.during import matching

        part = starts_of(reading)[-1]
        hits = matching.find(part.incidents, index(), part.facts)
        others = {hit.rule.entry for hit in hits if hit.rule.role == "cause"} - {found.cause.id}
        yield from ((path, found.cause.id, other) for other in sorted(others))


def test_a_cause_that_matches_and_loses_names_the_winner_and_the_reason() -> None:
    found = list(rivals())
    assert len(found) > 20
    sentences = {traced(path, other).sentence for path, _, other in found}
    assert not {text for text in sentences if text.startswith("It fired")}
    assert {text for text in sentences if "won: its weight is" in text}
    for path, winner, other in found:
        lost = traced(path, other)
        assert lost.winner == winner
        assert f"`{winner}`" in lost.sentence or "kept serving" in lost.sentence or "is not a cause" in lost.sentence


@pytest.mark.parametrize("kind", ["causes", "signs"])
def test_a_trace_fires_exactly_for_what_the_log_is_recognised_as(kind: str) -> None:
    for path in sorted((KNOWLEDGE / kind).glob("*/*.log")):
        assert traced(path, path.parent.name).fired is path.name.startswith("match-"), path


def test_an_entry_without_patterns_refers_to_launch_check() -> None:
    found = traced(NEXTN, "no-such-entry")
    assert not found.patterns and "`launch check`" in found.sentence


def test_facts_of_a_log_are_found_again_at_their_lines() -> None:
    path = CORPUS / "0.5.23-cpu" / "a-normal.log"
    reading = read(scan([path.read_bytes()], index().words), index())
    at = read_at(reading.scanned, "0.5.23")
    line = int(at["model.name"].removeprefix("read from log line "))
    assert "server_args=" in path.read_text(errors="replace").splitlines()[line - 1]
    flags = {name for name in reading.facts if name.startswith("flag.")}
    assert flags and {at[name] for name in flags} == {at["model.name"]}
