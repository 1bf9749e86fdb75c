"""A soak lasts its full time in spite of failures, and ends early when the server is gone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from msgspec.structs import replace

from checks.after.validation import Level, Validation
from checks.vocabulary import Outcome
from launcher.client.endpoint import Endpoint
from launcher.flows.validate.soak import soak
from launcher.transport.local import LocalTransport
from tests.support.fake_clock import FakeClock
from tests.support.fake_server import State, serving
from tests.support.ports import free_port
from tests.support.validating import LENIENT, requested, subject_at

START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def soaked(
    port: int,
    seconds: float = 600,
    progress: Callable[[Validation], None] = lambda _: None,
    gone: Callable[[], bool] = lambda: False,
    **expect: object,
) -> tuple[Validation, ...]:
    endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
    request = replace(requested({**LENIENT, **expect}), soak_every=60.0)
    request = replace(request, expect=replace(request.expect, soak=seconds))
    try:
        return soak(subject_at(endpoint, gone=gone), request, FakeClock(START), progress)
    finally:
        endpoint.close()


def test_rounds_run_from_the_start_to_the_end_and_each_is_dated() -> None:
    with serving() as (port, _):
        rounds = soaked(port, 120)
    assert [item.started[11:19] for item in rounds] == ["12:00:00", "12:01:00", "12:02:00"]
    assert {item.outcome for item in rounds} == {Outcome.PASS}


def test_a_temporary_fault_shows_in_its_round_and_not_in_later_ones() -> None:
    def spoil(state: State, count: int) -> None:
        state.faults = frozenset({"bangs"}) if count == 2 else frozenset()

    rounds: list[Validation] = []
    with serving() as (port, state):

        def watch(validation: Validation) -> None:
            rounds.append(validation)
            spoil(state, len(rounds))

        soaked(port, 240, progress=watch)
    assert [item.outcome for item in rounds] == [Outcome.PASS] * 2 + [Outcome.FAIL] + [Outcome.PASS] * 2


def test_one_frozen_rank_of_four_is_noticed_although_health_says_200() -> None:
    with serving("frozen-rank", dp_size=4, max_running_requests=16) as (port, _):
        [validation] = soaked(port, 0, timeout=0.5)
    verdicts = {item.id: item for item in validation.verdicts}
    assert verdicts["health"].outcome is Outcome.PASS
    assert verdicts["pulse"].outcome is Outcome.FAIL
    assert "a rank is not responding" in verdicts["pulse"].message


def test_a_soak_ends_when_the_server_does_not_answer() -> None:
    rounds = soaked(free_port())
    assert len(rounds) == 1
    assert rounds[0].level is Level.NONE


def test_a_soak_ends_when_the_process_is_gone_even_during_a_pause() -> None:
    calls: list[int] = []

    def gone() -> bool:
        calls.append(1)
        return len(calls) > 5

    with serving() as (port, _):
        assert len(soaked(port, gone=gone)) == 1
