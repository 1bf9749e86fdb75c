"""A soak remembers every failure with its date, and takes back what was passed before."""

from __future__ import annotations

from checks.after.soak_rounds import with_rounds
from checks.after.validation import Level, Validation
from checks.vocabulary import Outcome, Verdict

PASS, FAIL = Outcome.PASS, Outcome.FAIL


def verdicts(**outcomes: Outcome) -> tuple[Verdict, ...]:
    return tuple(
        Verdict(id=name.replace("_", "-"), outcome=outcome, message=f"{name} {outcome}")
        for name, outcome in outcomes.items()
    )


def validation(started: str = "", **outcomes: Outcome) -> Validation:
    known = {"health": PASS, "names_model": PASS, "prose": PASS, **outcomes}
    return Validation(
        suite="smoke", outcome=PASS, level=Level.CORRECT, summary="", verdicts=verdicts(**known), started=started
    )


def test_quiet_rounds_are_a_pass_with_their_number() -> None:
    found = with_rounds(validation(), [validation(f"12:0{n}") for n in range(4)], 60)
    assert found.verdicts[-1].id == "soak"
    assert found.verdicts[-1].figures["rounds"] == 4
    assert (found.outcome, found.level) == (PASS, Level.CORRECT)


def test_every_failure_is_dated_and_the_first_one_named() -> None:
    rounds = [
        validation("12:00"),
        validation("12:01", prose=FAIL),
        validation("12:02"),
        validation("12:03", health=FAIL),
    ]
    found = with_rounds(validation(), rounds, 60)
    soak = found.verdicts[-1]
    assert soak.message.startswith("2 of 4 rounds failed, first at 12:01: prose")
    assert [(item.time, item.text.partition(":")[0]) for item in soak.evidence] == [
        ("12:01", "prose"),
        ("12:03", "health"),
    ]


def test_a_probe_that_failed_in_some_round_is_no_pass_any_more() -> None:
    found = with_rounds(validation(), [validation("12:01", prose=FAIL), validation("12:02")], 60)
    prose = next(item for item in found.verdicts if item.id == "prose")
    assert prose.outcome is FAIL
    assert "12:01, while soaking" in prose.message
    assert (found.outcome, found.level) == (FAIL, Level.READY)


def test_a_frozen_rank_takes_the_server_below_ready() -> None:
    found = with_rounds(validation(), [validation("12:01", pulse=FAIL)], 60)
    assert found.level is Level.ALIVE


def test_a_server_that_is_gone_is_said_to_be() -> None:
    last = Validation(
        suite="soak", outcome=FAIL, level=Level.NONE, summary="", verdicts=verdicts(health=FAIL), started="9"
    )
    assert "the server no longer responds" in with_rounds(validation(), [last], 60).verdicts[-1].message


def test_no_round_is_no_pass() -> None:
    assert with_rounds(validation(), [], 0).verdicts[-1].outcome is Outcome.INCONCLUSIVE
