"""Soak a server that passed its suite: keep probing it in dated rounds.

With a frozen rank, /health returns 503 only after a long time, or never. `checks.after.soak_rounds` judges the rounds.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from checks.after.validation import Level, Validation
from launcher.clock import Clock
from launcher.flows.validate.request import Subject, ValidationRequest
from launcher.flows.validate.suite import run_suite

SLICE = 1.0  # seconds between two checks of `subject.gone` during a pause


def soak(
    subject: Subject,
    request: ValidationRequest,
    clock: Clock,
    progress: Callable[[Validation], None] = lambda _: None,
) -> tuple[Validation, ...]:
    """Return the rounds of `request.expect.soak` seconds: one every `request.pace` seconds, the last one at the end.

    A failed round does not end the soak, because what matters is whether a fault passes, persists or returns. The soak
    ends early when the server stops responding, or when its process is gone.
    """
    # each round requests the server's state again, and is compared with no baseline
    soaked = replace(subject, info={}, ledger=(), read_log=None, live_baseline=None)
    round_request = ValidationRequest(expect=replace(request.expect, suite="soak"))
    end = clock.monotonic() + request.expect.soak
    rounds: list[Validation] = []
    while True:
        begun = clock.monotonic()
        rounds.append(run_suite(soaked, round_request, clock))
        progress(rounds[-1])
        next_start = begun + request.pace
        if rounds[-1].level is Level.NONE or subject.gone() or max(next_start, clock.monotonic()) > end:
            return tuple(rounds)
        while (pause := next_start - clock.monotonic()) > 0:
            clock.sleep(min(pause, SLICE))
            if subject.gone():
                return tuple(rounds)
