"""Replies that came anyway show faults that no probe looks for; sound ones show none."""

from __future__ import annotations

from typing import Any

import pytest

from checks.after.probes.context import Context, Server
from checks.after.probes.every_reply import OBSERVERS, Exchange
from checks.after.probes.exchange import Answer, Ask
from checks.after.probes.registry import probes
from checks.vocabulary import Outcome, Verdict
from tests.support.planted_serving import verdicts

MANY = ("greedy-repeat", "limits", "prose", "stream-equals-plain", "chat-limits", "sampled", "every-script")


@pytest.mark.parametrize(
    ("observer", "fault"),
    [
        ("reply-contract", "created-1970"),
        ("reply-contract", "choices-index-zero"),
        ("reply-contract", "chat-one-too-many"),
        ("every-text", "mojibake-out"),
        ("every-stream", "stream-usage-zero"),
    ],
)
def test_an_observer_finds_a_planted_fault(observer: str, fault: str) -> None:
    found = verdicts(*MANY, observer, fault=fault)[observer]
    assert found.outcome is Outcome.FAIL, found.message


def test_observers_pass_a_sound_server() -> None:
    found = verdicts(*MANY, *OBSERVERS)
    assert {found[name].outcome for name in OBSERVERS} == {Outcome.PASS}, [found[name].message for name in OBSERVERS]


def exchange(text: str, probe: str = "p", **fields: Any) -> Exchange:
    values = {"path": "/generate", "status": 200, "finish": "stop", "text": text, **fields}
    return Exchange(probe=probe, ask=Ask(path="/generate", payload={}), answer=Answer(**values))


def judged(observer: str, exchanges: list[Exchange]) -> Verdict:
    entry = next(probe for probe in probes() if probe.id == observer)
    return OBSERVERS[observer](entry, Context(server=Server()), exchanges)


PROSE = "The ship came into the harbour before the storm, and nobody was surprised that it had been so late. "
SALAD = "qua ment ist olo xan driv ek ump fra thel gor iv zug per ment qua olo xan driv ek"


def test_salad_among_prose_is_found_with_its_rate() -> None:
    texts = [exchange(PROSE + str(number)) for number in range(30)]
    assert judged("every-text", texts).outcome is Outcome.PASS
    found = judged("every-text", [*texts, exchange(SALAD)])
    assert (found.outcome, found.message) == (Outcome.FAIL, "word salad in 1 of 31, 0.6% to 16.2% of all")
    assert (
        judged("every-text", [exchange(SALAD) for _ in range(30)]).outcome is Outcome.PASS
    )  # no prose to compare with


def test_one_stream_that_stands_still_is_a_fact() -> None:
    flowing = [exchange("a b c", times=(0.1, 0.2, 0.3)) for _ in range(20)]
    assert judged("every-stream", flowing).outcome is Outcome.PASS
    found = judged("every-stream", [*flowing, exchange("a b c", times=(0.1, 4.2, 4.3))])
    assert (found.outcome, "4.1 s" in found.message) == (Outcome.FAIL, True)


def test_nothing_is_judged_where_nobody_answered() -> None:
    refused = exchange("", status=0, error="refused", fault="refused")
    found = judged("reply-contract", [refused])
    assert (found.outcome, found.unreachable) == (Outcome.SKIP, True)
