"""Go on probing a server that passed: one round after the other for a while, each dated.

A frozen rank answers /health with 503 only after long, or never. What the rounds mean is `checks.after.soak_rounds`.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from checks.after.validation import Level, Validation
from launcher.clock import Clock
from launcher.flows.validate.request import Subject, ValidationRequest
from launcher.flows.validate.suite import run_suite

SLICE = 1.0  # seconds of a pause after which `subject.gone` is looked at


def soak(
    subject: Subject,
    request: ValidationRequest,
    clock: Clock,
    progress: Callable[[Validation], None] = lambda _: None,
) -> tuple[Validation, ...]:
    """The rounds of `request.expect.soak` seconds, one each `request.pace` seconds, the last one at the end.

    A failed round does not end the soak: whether a fault passes, stays or comes back is what matters. It ends when the
    server stops responding, or when the process is gone.
    """
    # each round asks the server for its state again, and is compared with nothing
    alone = replace(subject, info={}, ledger=(), read_log=None, live_baseline=None)
    one = ValidationRequest(expect=replace(request.expect, suite="soak"))
    end = clock.monotonic() + request.expect.soak
    rounds: list[Validation] = []
    while True:
        begun = clock.monotonic()
        rounds.append(run_suite(alone, one, clock))
        progress(rounds[-1])
        following = begun + request.pace
        if rounds[-1].level is Level.NONE or subject.gone() or max(following, clock.monotonic()) > end:
            return tuple(rounds)
        while (pause := following - clock.monotonic()) > 0:
            clock.sleep(min(pause, SLICE))
            if subject.gone():
                return tuple(rounds)
