"""The engine's phrases match lines that real engines printed."""

from __future__ import annotations

import re

import pytest

from checks.catalog.engine_phrases import ARGUMENTS, ASKED_TO_STOP, DECODE, DIED, EXIT_MARKERS, LEFT, PREFILL, READY
from tests.support.paths import CORPUS

LOGS = {path.name: path.read_text(errors="replace") for path in sorted(CORPUS.glob("*/*.log"))}


def lines_with(pattern: str) -> list[str]:
    return [line for text in LOGS.values() for line in text.splitlines() if re.search(pattern, line)]


@pytest.mark.parametrize("phrase", [re.escape(ARGUMENTS), DECODE, PREFILL, READY, DIED, ASKED_TO_STOP, LEFT])
def test_a_phrase_is_printed_by_a_real_engine(phrase: str) -> None:
    assert lines_with(phrase)


def test_a_death_is_not_a_request_to_stop() -> None:
    died = [line for line in lines_with(DIED) if "Received sigquit" in line or "hit an exception" in line]
    assert died and not any(re.search(ASKED_TO_STOP, line) for line in died)


def test_the_exit_markers_occur_in_lines_of_a_death_or_a_stop() -> None:
    """A scan keeps lines by these words: a death without any of them would be cut out of a long log."""
    for line in [line for line in lines_with(DIED) if "hit an exception" not in line]:
        assert any(word.lower() in line.lower() for word in (*EXIT_MARKERS, "sigquit", "died")), line
