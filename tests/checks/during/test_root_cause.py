"""Which hit names the cause, tested on hits made by hand, without a log or the knowledge."""

from __future__ import annotations

from typing import Any

import pytest

from checks.during.log.ending import Ending
from checks.during.log.incidents import Incident, Raised
from checks.during.log.lines import Line
from checks.during.matching import Hit
from checks.during.root_cause import NEAR_LINES, choose, decisive, not_yielding, settled
from checks.during.signature_index import Rule
from checks.vocabulary import EngineRange, Role, Weight

HINT, USUAL, DECISIVE = Weight
CRASHED = Ending(death=900)


def hit(entry: str, weight: Weight = USUAL, incident: int = 0, **fields: Any) -> Hit:
    """A hit of an entry; `yields`, `role`, `fails` and `when` go to its rule."""
    rule = Rule(
        entry=entry,
        number=0,
        title=entry,
        role=fields.pop("role", Role.CAUSE),
        all=(entry,),
        anywhere=(),
        without=(),
        when=fields.pop("when", None),
        engine=(EngineRange(), EngineRange()),
        weight=weight,
        yields_to=fields.pop("yields", ()),
        fails=fields.pop("fails", ""),
    )
    return Hit(rule=rule, incident=incident, lines=(), **fields)


def crash(line: int) -> Incident:
    raised = Raised(type="ValueError", message="", frames=(), first=0, last=0)
    return Incident(kind="traceback", lines=(Line(number=line, text="Traceback"),), chain=(raised,))


def single(line: int) -> Incident:
    return Incident(kind="line", lines=(Line(number=line, text="text"),))


def named(incidents: list[Incident], *hits: Hit, ending: Ending = CRASHED) -> str | None:
    chosen = choose(incidents, hits, ending)
    return chosen.rule.entry if chosen else None


BENIGN, SYMPTOM = {"role": Role.BENIGN}, {"role": Role.SYMPTOM}


@pytest.mark.parametrize(
    ("rivals", "cause"),
    [
        pytest.param([hit("a", HINT), hit("b", USUAL), hit("c", DECISIVE)], "c", id="the-heaviest"),
        pytest.param([hit("a", USUAL, link=1), hit("b", USUAL, link=0)], "b", id="the-root-of-the-chain"),
        pytest.param([hit("a", DECISIVE, link=1), hit("b", USUAL, link=0)], "a", id="weight-before-the-root"),
        pytest.param([hit("a", matched_chars=9), hit("b", matched_chars=10)], "b", id="the-longer-text"),
        pytest.param(
            [hit("a", link=0, matched_chars=1), hit("b", link=1, matched_chars=99)], "a", id="root-before-text"
        ),
        pytest.param([hit("a"), hit("b", when={"host.sm": 90})], "b", id="more-facts"),
        pytest.param([hit("a", DECISIVE, yields=("b",)), hit("b", HINT)], "b", id="yielding-before-weight"),
        pytest.param([hit("a", DECISIVE, yields=("z",)), hit("b")], "a", id="yields-to-one-that-does-not-speak"),
        pytest.param([hit("a", yields=("b",)), hit("b", yields=("c",)), hit("c", HINT)], "c", id="yields-in-a-row"),
        pytest.param([hit("a", yields=("b",)), hit("a", DECISIVE), hit("b")], "a", id="one-pattern-of-two-yields"),
        pytest.param([hit("a", USUAL), hit("n", USUAL, **BENIGN)], None, id="benign-of-the-same-weight"),
        pytest.param([hit("a", USUAL), hit("n", HINT, **BENIGN)], "a", id="benign-of-less-weight"),
        pytest.param([hit("a", yields=("n",)), hit("n", HINT, **BENIGN)], None, id="yields-to-a-benign-sign"),
        pytest.param(
            [hit("a", HINT), hit("n", DECISIVE, yields=("a",), **BENIGN)], "a", id="a-benign-sign-that-yields"
        ),
        pytest.param([hit("a", USUAL), hit("s", USUAL, **SYMPTOM)], "a", id="symptom-of-the-same-weight"),
        pytest.param([hit("a", USUAL), hit("s", DECISIVE, **SYMPTOM)], None, id="symptom-of-more-weight"),
        pytest.param([hit("s", DECISIVE, **SYMPTOM)], None, id="a-symptom-alone"),
        pytest.param([], None, id="nothing"),
    ],
)
def test_one_incident_has_one_cause_or_none(rivals: list[Hit], cause: str | None) -> None:
    best = decisive(rivals)
    assert (best.rule.entry if best else None) == cause
    again = decisive(rivals[::-1])
    assert (again.rule.entry if again else None) == cause


def test_only_hits_that_yield_drop_out() -> None:
    rivals = [hit("a", yields=("b", "c")), hit("b"), hit("d", yields=("d-other",))]
    assert [item.rule.entry for item in not_yielding(rivals)] == ["b", "d"]


@pytest.mark.parametrize(
    ("first", "second", "cause"),
    [
        (USUAL, DECISIVE, "first"),
        (USUAL, USUAL, "first"),
        (HINT, HINT, "first"),
        (HINT, USUAL, "second"),
        (HINT, DECISIVE, "second"),
    ],
)
def test_the_earliest_crash_counts_and_hints_come_last(first: Weight, second: Weight, cause: str) -> None:
    hits = hit("second", second, incident=1), hit("first", first, incident=0)
    assert named([crash(10), crash(20)], *hits) == cause


def test_the_time_decides_which_crash_is_the_earliest() -> None:
    def at(time: str, line: int) -> Incident:
        return Incident(kind="traceback", lines=(Line(number=line, text="Traceback", time=time),))

    found = [at("2026-11-29 15:25:09", 10), at("2026-11-29 15:25:03", 20)]
    assert named(found, hit("late", incident=0), hit("early", incident=1)) == "early"


def test_yielding_applies_only_inside_one_crash() -> None:
    hits = hit("first", incident=0, yields=("second",)), hit("second", incident=1)
    assert named([crash(10), crash(20)], *hits) == "first"


@pytest.mark.parametrize(
    ("line", "explained", "cause"),
    [
        pytest.param(hit("line", USUAL), hit("crash", USUAL, 1), "crash", id="the-crash-explains-itself"),
        pytest.param(hit("line", USUAL), hit("crash", HINT, 1), "line", id="the-crash-only-hints"),
        pytest.param(hit("line", DECISIVE), hit("crash", USUAL, 1), "line", id="a-decisive-line"),
        pytest.param(hit("line", DECISIVE), hit("crash", DECISIVE, 1), "crash", id="both-decisive"),
        pytest.param(hit("line", DECISIVE, yields=("crash",)), hit("crash", HINT, 1), "crash", id="the-line-yields"),
        pytest.param(hit("line", HINT), hit("crash", DECISIVE, 1, yields=("line",)), "line", id="the-crash-yields"),
    ],
)
@pytest.mark.parametrize("distance", [1, NEAR_LINES * 9])
def test_a_line_against_a_crash_that_is_explained(line: Hit, explained: Hit, cause: str, distance: int) -> None:
    assert named([single(10), crash(10 + distance)], line, explained) == cause


@pytest.mark.parametrize(
    ("weight", "distance", "cause"),
    [
        (USUAL, NEAR_LINES, "line"),
        (USUAL, NEAR_LINES + 1, None),
        (HINT, NEAR_LINES, "line"),
        (HINT, NEAR_LINES + 1, None),
        (DECISIVE, NEAR_LINES + 1, "line"),
    ],
)
@pytest.mark.parametrize("side", [1, -1], ids=["above", "below"])
def test_a_line_near_and_far_from_an_open_crash(weight: Weight, distance: int, cause: str | None, side: int) -> None:
    assert named([single(500), crash(500 + side * distance)], hit("line", weight)) == cause


@pytest.mark.parametrize(
    ("first", "second", "cause"),
    [
        (hit("a", USUAL), hit("b", DECISIVE, 1), "a"),
        (hit("a", HINT), hit("b", DECISIVE, 1), "b"),
        (hit("a", HINT), hit("b", USUAL, 1), "b"),
        (hit("a", DECISIVE, yields=("b",)), hit("b", HINT, 1), "b"),
        (hit("a", HINT), hit("b", DECISIVE, 1, yields=("a",)), "a"),
    ],
)
def test_of_two_lines_without_a_crash(first: Hit, second: Hit, cause: str) -> None:
    assert named([single(10), single(800)], first, second) == cause


def test_what_follows_a_request_to_stop_is_not_a_cause() -> None:
    assert named([crash(20)], hit("a", DECISIVE), ending=Ending(stop=10)) is None
    assert named([crash(20)], hit("a"), ending=Ending(stop=30)) == "a"


def test_a_failed_request_is_benign_once_the_engine_went_on() -> None:
    incident = crash(20)
    refused = hit("a", fails="request")
    for alive, role in ((0, Role.CAUSE), (19, Role.CAUSE), (21, Role.BENIGN)):
        assert settled(refused, [incident], Ending(alive=alive)).rule.role is role
    assert settled(hit("a"), [incident], Ending(alive=21)).rule.role is Role.CAUSE


ONE, TWO = {"observed.kind": "garbled"}, {"observed.kind": "garbled", "flag.page-size": "64"}


@pytest.mark.parametrize(
    ("hits", "cause"),
    [
        pytest.param([hit("a", when=ONE), hit("b", when=TWO)], "b", id="more-facts"),
        pytest.param([hit("a", when=ONE), hit("b", when=ONE)], None, id="a-tie-of-two"),
        pytest.param([hit("a", when=ONE), hit("a", when=ONE)], "a", id="two-patterns-of-one"),
        pytest.param([hit("a", USUAL, when=ONE), hit("b", HINT, when=TWO)], "a", id="weight-before-facts"),
        pytest.param([hit("a", when=ONE, yields=("b",)), hit("b", when=ONE)], "b", id="one-of-a-tie-yields"),
        pytest.param(
            [hit("a", DECISIVE, when=TWO, yields=("b",)), hit("b", HINT, when=ONE)], "b", id="the-better-yields"
        ),
        pytest.param([hit("n", when=ONE, role=Role.LEDGER)], None, id="not-a-cause"),
    ],
)
def test_causes_that_rest_on_what_was_observed(hits: list[Hit], cause: str | None) -> None:
    nowhere = [Hit(rule=item.rule, incident=-1, lines=()) for item in hits]
    assert named([], *nowhere, ending=Ending()) == cause


def test_observed_facts_name_a_cause_only_without_an_incident() -> None:
    observed = hit("observed", DECISIVE, incident=-1, when=ONE)
    assert named([crash(10)], hit("crash", HINT), observed) == "crash"
    assert named([], observed) == "observed"
