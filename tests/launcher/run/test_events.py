"""Events as lines of events.jsonl: read back unchanged, by older and newer launchers as well."""

from __future__ import annotations

import json
from typing import Any

import pytest

from launcher.run.events import (
    Activity,
    Answering,
    Event,
    Exited,
    Impostor,
    LinkLost,
    Overdue,
    PhaseEntered,
    Progress,
    Ready,
    Resumed,
    Stalled,
    Started,
    from_json,
    to_json,
)

EVERY: list[Event] = [
    Started(at=0.0, pid=7),
    PhaseEntered(at=0.1, phase="args", title="x"),
    Progress(at=1.0, phase="weights", text="é\u2028", fraction=0.5),
    Progress(at=1.0, phase="weights", text=""),
    Stalled(at=2.0, phase="weights", silent=30.0, last_line="…", doing="nothing", activity=Activity.STOPPED),
    Overdue(at=3.0, phase="weights", limit=9.0, doing="compiling", activity=Activity.COMPILING),
    Resumed(at=4.0, phase="weights"),
    Answering(at=5.0, status=503),
    Ready(at=6.0, evidence=("a", "b")),
    Impostor(at=7.0, reason="another model"),
    LinkLost(at=8.0, reason="timeout"),
    Exited(at=9.0, state="exited", code=137),
    Exited(at=9.0, state="vanished", code=None),
]


def stored(event: Event) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(json.dumps(to_json(event), ensure_ascii=False))
    return line


def test_every_kind_of_event_is_covered_here() -> None:
    assert {type(event) for event in EVERY} == set(Event.__args__)


@pytest.mark.parametrize("event", EVERY, ids=lambda event: type(event).__name__)
def test_events_are_read_back_unchanged(event: Event) -> None:
    assert stored(event)["event"] == type(event).__name__
    assert from_json(to_json(event)) == event
    assert to_json_again(stored(event)) == stored(event)


def to_json_again(line: dict[str, Any]) -> dict[str, Any]:
    event = from_json(line)
    assert event is not None
    assert type(event).__name__ == line["event"]
    again: dict[str, Any] = json.loads(json.dumps(to_json(event)))
    return again


@pytest.mark.parametrize("line", [{"event": "FromTheFuture", "at": 1}, {"event": None}, {}, {"event": "Struct"}])
def test_a_kind_that_only_a_newer_launcher_knows_is_left_out(line: dict[str, Any]) -> None:
    assert from_json(line) is None


def test_a_field_that_only_a_newer_launcher_knows_is_left_out() -> None:
    assert from_json({"event": "Resumed", "at": 1.0, "phase": "p", "mood": "good"}) == Resumed(at=1.0, phase="p")


def test_a_stall_of_an_older_launcher_has_an_unknown_activity() -> None:
    line = stored(EVERY[4])
    del line["activity"]
    event = from_json(line)
    assert isinstance(event, Stalled)
    assert event.activity is Activity.UNKNOWN
