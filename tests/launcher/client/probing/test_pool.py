"""Requests of one lane are sent one after another; different lanes run concurrently."""

from __future__ import annotations

import threading
import time

import pytest

from checks.after.probes.context import Context, Server
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Script, verdict
from checks.vocabulary import Outcome
from launcher.client.probing import pool
from launcher.clock import SystemClock

PROBE = Probe(id="lanes", title="", why="", kind="speed", level="good-enough", suites=("full",), alone=True)


class Recorder:
    """A server that records which requests were in flight at the same time."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.concurrent: list[frozenset[str]] = []
        self._in_flight: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, ask: Ask) -> Answer:
        with self._lock:
            self.sent.append(ask.path)
            self._in_flight.add(ask.path)
            self.concurrent.append(frozenset(self._in_flight))
        time.sleep(0.02)
        with self._lock:
            self._in_flight.discard(ask.path)
        return Answer(path=ask.path, status=200, text=ask.path)


def run(wave: list[Ask], send: pool.Send, monkeypatch: pytest.MonkeyPatch) -> list[Answer]:
    received: list[Answer] = []

    def script(probe: Probe, context: Context) -> Script:
        received.extend((yield wave))
        return verdict(probe.id, Outcome.PASS, "")

    monkeypatch.setattr(pool, "script", script)
    [result] = pool.run_probes([PROBE], Context(server=Server(running=4)), send, SystemClock())
    assert result.verdict.outcome is Outcome.PASS, result
    return received


def test_requests_of_a_lane_are_ordered_and_lanes_run_concurrently(monkeypatch: pytest.MonkeyPatch) -> None:
    wave = [Ask(path=f"{row % 2} {row // 2}", payload={}, lane=row % 2) for row in range(6)]
    server = Recorder()
    answers = run(wave, server, monkeypatch)
    assert [answer.text for answer in answers] == [ask.path for ask in wave]
    lanes = [[path[0] for path in paths] for paths in server.concurrent]
    assert all(len(set(lane)) == len(lane) for lane in lanes)
    assert any(len(lane) == 2 for lane in lanes)
    assert [path for path in server.sent if path[0] == "0"] == ["0 0", "0 1", "0 2"]


def test_a_request_that_raises_is_an_error_of_its_probe_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def send(ask: Ask) -> Answer:
        raise ValueError("a bug")

    monkeypatch.setattr(pool, "script", lambda probe, context: (yield [Ask(path="/x", payload={}, lane=0)]))
    [result] = pool.run_probes([PROBE], Context(server=Server(running=4)), send, SystemClock())
    assert result.verdict.outcome is Outcome.ERROR
    assert "a bug" in result.verdict.evidence[0].text
