"""A frozen engine costs one timeout, not one per request; a slow engine is waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from checks.after.probes.context import Context, Server
from checks.after.probes.exchange import Answer, Ask
from checks.after.probes.registry import of_suite
from checks.after.probes.replies import failure
from checks.vocabulary import Outcome
from launcher.client.endpoint import Endpoint, EndpointBroken, EndpointRefused
from launcher.client.probing.guard import Guarded
from launcher.client.probing.pool import run_probes
from launcher.transport.local import LocalTransport
from tests.support.fake_clock import FakeClock
from tests.support.fake_server import serving

NOW = datetime(2026, 11, 29, tzinfo=UTC)
POST = Ask(path="/generate", payload={})
FROZEN = Answer(path="/health", status=503, seconds=20.0)
WELL = Answer(path="/health", status=200, seconds=1.0)
LATE = failure("/generate", "timeout", "no answer in time", 30.0)


def guarded(send: Callable[[Ask], Answer], patience: int = 16) -> Guarded:
    return Guarded(send, FakeClock(NOW), 60.0, patience)


def answering(health: list[Answer], other: Answer = LATE) -> tuple[Callable[[Ask], Answer], list[str]]:
    """Return a `send` whose /health gives these answers in turn, and the list of paths that it receives."""
    paths: list[str] = []
    answers = iter(health)

    def send(ask: Ask) -> Answer:
        paths.append(ask.path)
        return next(answers) if ask.path == "/health" else other

    return send, paths


def test_after_a_timeout_a_frozen_engine_is_recognised_and_gets_no_more_requests() -> None:
    send, paths = answering([FROZEN, FROZEN])
    guard = guarded(send)
    assert guard(POST).fault == "timeout"
    assert guard(POST).fault == "halted"
    assert (guard.down, paths) == (True, ["/generate", "/health", "/health"])


def test_one_bad_health_is_a_long_step_and_not_a_hang() -> None:
    send, _ = answering([FROZEN, WELL])
    guard = guarded(send)
    guard(POST)
    assert (guard.halted, guard.down) == ("", False)


def test_an_immediate_503_is_a_warm_up_and_not_a_hang() -> None:
    send, _ = answering([Answer(path="/health", status=503, seconds=0.1)])
    guard = guarded(send)
    guard(Ask(path="/health"))
    assert not guard.halted


def test_many_timeouts_with_a_good_health_also_halt() -> None:
    send, paths = answering([WELL] * 9)
    guard = guarded(send, patience=3)
    assert [guard(POST).fault for _ in range(5)] == ["timeout"] * 3 + ["halted"] * 2
    assert "3 requests were not answered in time" in guard.halted
    assert not guard.down
    assert paths.count("/generate") == 3


def test_a_waiting_request_is_cancelled_when_the_engine_freezes() -> None:
    clock, never = FakeClock(NOW), threading.Event()

    def send(ask: Ask) -> Answer:
        if ask.path == "/health":
            return FROZEN
        clock.sleep(61)
        never.wait(20)
        return LATE

    guard = Guarded(send, clock, 60.0)
    with ThreadPoolExecutor(1) as pool:
        answer = guard.wait(POST, pool.submit(guard, POST))
        never.set()
    assert answer.error.startswith("cancelled: the engine is stalled: /health returned 503")


def test_a_server_that_dies_during_probing_is_gone_and_a_full_queue_is_not() -> None:
    refused = failure("/x", "refused", "cannot connect", 0.0)
    for health, gone in ((refused, True), (WELL, False)):
        replies = iter([Answer(path="/generate", status=200), refused, health])
        guard = guarded(lambda _, replies=replies: next(replies))
        guard(POST)
        guard(POST)
        assert (guard.down, guard.halted) == (gone, "the server stopped responding" if gone else "")


def test_a_server_that_never_answered_gets_the_requests_of_every_probe() -> None:
    guard = guarded(lambda ask: failure(ask.path, "refused", "cannot connect", 0.0))
    assert [guard(POST).fault for _ in range(3)] == ["refused"] * 3


def test_probes_of_a_frozen_engine_are_skipped_and_do_not_pass() -> None:
    send, paths = answering([FROZEN], Answer(path="/v1/models", status=200, body={"data": [{"id": "m"}]}))
    context = Context(server=Server())
    verdicts = {item.verdict.id: item.verdict for item in run_probes(of_suite("smoke"), context, send, FakeClock(NOW))}
    assert (verdicts["health"].outcome, "stalled" in verdicts["health"].message) == (Outcome.FAIL, True)
    assert verdicts["names-model"].outcome is Outcome.PASS
    others = [item for name, item in verdicts.items() if name not in ("health", "names-model")]
    assert {item.outcome for item in others} == {Outcome.SKIP}
    assert all("not run: the engine is stalled" in item.message for item in others)
    assert sorted(paths) == ["/health", "/v1/models"]


def test_an_engine_that_freezes_during_probing_is_not_ready() -> None:
    answers = iter([WELL, FROZEN, FROZEN])
    models = Answer(path="/v1/models", status=200, body={"data": [{"id": "m"}]})

    def send(ask: Ask) -> Answer:
        return next(answers) if ask.path == "/health" else models if ask.path == "/v1/models" else LATE

    measured = list(run_probes(of_suite("smoke"), Context(server=Server()), send, FakeClock(NOW)))
    assert measured[-1].verdict.id == "health"
    assert measured[-1].verdict.outcome is Outcome.FAIL
    assert "while it was being probed: the engine is stalled" in measured[-1].verdict.message


@pytest.mark.parametrize("stream", [False, True])
def test_closing_an_endpoint_ends_requests_of_other_threads(stream: bool) -> None:
    with serving("hangs") as (port, state):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)

        def ask() -> str:
            try:
                if stream:
                    with endpoint.stream("/generate", {}, 60) as reply:
                        return f"{reply.status}"
                return f"{endpoint.post('/generate', {}, 60).status}"
            except (EndpointBroken, EndpointRefused) as error:
                return type(error).__name__

        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(ask)
            while not state.running:
                pass
            endpoint.close()
            assert job.result(20) in ("EndpointBroken", "EndpointRefused")
