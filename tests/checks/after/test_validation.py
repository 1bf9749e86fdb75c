"""The ladder has no gaps and the ledger forgets nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pytest
from msgspec.structs import replace

from checks.after.probes.expect import AcceptedWarning
from checks.after.probes.registry import probes
from checks.after.validation import Level, level_of, outcome_of, settle, summary_of
from checks.catalog.entries import entries
from checks.vocabulary import Evidence, Match, Outcome, Role, Verdict

# --- ladder and ledger


def verdicts(**outcomes: Outcome) -> list[Verdict]:
    return [Verdict(id=name.replace("_", "-"), outcome=outcome, message="") for name, outcome in outcomes.items()]


READY = {"health": Outcome.PASS, "names_model": Outcome.PASS}


@pytest.mark.parametrize(
    ("more", "level"),
    [
        ({}, Level.READY),
        ({"prose": Outcome.PASS}, Level.CORRECT),
        ({"prose": Outcome.PASS, "limits": Outcome.SKIP}, Level.CORRECT),
        ({"prose": Outcome.SKIP}, Level.READY),
        ({"prose": Outcome.PASS, "limits": Outcome.INCONCLUSIVE}, Level.READY),
        ({"prose": Outcome.FAIL, "speed": Outcome.PASS}, Level.READY),
        ({"prose": Outcome.PASS, "speed": Outcome.PASS}, Level.CORRECT),
        ({"prose": Outcome.PASS, "speed": Outcome.PASS, "accuracy_word_problems": Outcome.PASS}, Level.GOOD_ENOUGH),
        ({"prose": Outcome.PASS, "speed": Outcome.SKIP}, Level.CORRECT),
    ],
)
def test_a_level_is_reached_only_without_a_gap_below(more: dict[str, Outcome], level: Level) -> None:
    assert level_of(verdicts(**READY, **more), probes(), 0) is level


def test_a_server_that_answers_but_is_not_ready_is_alive() -> None:
    assert level_of(verdicts(health=Outcome.FAIL, prose=Outcome.PASS), probes(), 0) is Level.ALIVE


def test_nobody_there_is_not_alive() -> None:
    gone = [Verdict(id="health", outcome=Outcome.FAIL, message="", unreachable=True)]
    assert level_of(gone, probes(), 0) is Level.NONE


def test_an_open_warning_holds_a_server_at_ready() -> None:
    passed = verdicts(**READY, prose=Outcome.PASS)
    assert level_of(passed, probes(), 1) is Level.READY
    assert outcome_of(passed, 1) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("outcomes", "worst"),
    [
        ([Outcome.PASS, Outcome.SKIP], Outcome.PASS),
        ([Outcome.SKIP], Outcome.SKIP),
        ([Outcome.PASS, Outcome.INCONCLUSIVE], Outcome.INCONCLUSIVE),
        ([Outcome.ERROR, Outcome.INCONCLUSIVE], Outcome.ERROR),
        ([Outcome.ERROR, Outcome.FAIL], Outcome.FAIL),
    ],
)
def test_the_worst_outcome_counts(outcomes: Sequence[Outcome], worst: Outcome) -> None:
    assert outcome_of([Verdict(id="x", outcome=outcome, message="") for outcome in outcomes], 0) is worst


WARNING = Match(id="odd-scales", role=Role.LEDGER, title="Odd scales", evidence=(Evidence(text="scale_fmt", line=7),))
TODAY = date(2026, 11, 29)


@pytest.mark.parametrize(
    ("accepted", "state"),
    [
        ({}, "open"),
        ({"odd-scales": {"reason": "known", "until": "2027-01-01"}}, "accepted"),
        ({"odd-scales": {"reason": "known", "until": "2026-11-01"}}, "open"),
        ({"odd-scales": {"reason": "", "until": "2027-01-01"}}, "open"),
        ({"odd-scales": {"reason": "known"}}, "open"),
    ],
)
def test_a_person_accepts_a_warning_with_a_reason_and_until_a_day(
    accepted: dict[str, dict[str, str]], state: str
) -> None:
    by_person = {name: AcceptedWarning(**item) for name, item in accepted.items()}
    [item] = settle([WARNING, WARNING], verdicts(**READY), probes(), by_person, TODAY)
    assert item.state == state


def test_a_probe_that_clears_a_warning_closes_it_only_by_passing() -> None:
    clearing = [replace(probe, clears=("odd-scales",)) if probe.id == "prose" else probe for probe in probes()]
    for outcome, state in ((Outcome.PASS, "cleared"), (Outcome.SKIP, "open"), (Outcome.FAIL, "open")):
        [item] = settle([WARNING], verdicts(prose=outcome), clearing, {}, TODAY)
        assert (item.state, item.clears) == (state, ("prose",))


def test_a_warning_about_accuracy_and_speed_is_not_cleared_by_speed_alone() -> None:
    # model-through-transformers names three accuracy probes, any of which will do, and the speed
    warning = replace(WARNING, id="model-through-transformers")
    for outcomes, state in (
        ({"speed": Outcome.PASS}, "open"),
        ({"speed": Outcome.PASS, "accuracy_word_problems": Outcome.PASS}, "cleared"),
        ({"speed": Outcome.PASS, "accuracy_word_problems": Outcome.SKIP}, "open"),
        ({"accuracy_word_problems": Outcome.PASS}, "open"),
    ):
        [item] = settle([warning], verdicts(**outcomes), probes(), {}, TODAY)
        assert item.state == state, outcomes


def test_every_warning_of_the_catalogue_is_cleared_by_probes_that_exist() -> None:
    known = {probe.id for probe in probes()}
    signs = [item for item in entries() if item.role is Role.LEDGER]
    assert signs
    assert {name for item in signs for name in item.cleared_by} <= known


def test_the_summary_names_level_failure_and_open_warning() -> None:
    found = verdicts(**READY, prose=Outcome.FAIL)
    items = settle([WARNING], found, probes(), {}, TODAY)
    text = summary_of(Level.READY, Outcome.FAIL, found, items)
    assert text.startswith("ready; 1 failed: prose")
    assert "1 unresolved warning: odd-scales" in text
