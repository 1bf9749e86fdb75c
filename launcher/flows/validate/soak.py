"""Go on probing a server that passed: one round after the other for a while, each dated.

A frozen rank answers /health with 503 only after long, or never. What the rounds mean is `checks.after.soak_rounds`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from checks.after.validation import Level, Validation
from launcher.client.endpoint import Endpoint
from launcher.clock import Clock
from launcher.errors import UsageError
from launcher.flows.validate.suite import validate

EVERY = 15.0  # seconds from the start of one round to the next
SLICE = 1.0  # seconds of a pause after which `stop` is looked at
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def soak(  # noqa: PLR0913 - the flow's whole input, all of it by keyword
    endpoint: Endpoint,
    *,
    seconds: float,
    expect: Mapping[str, Any],
    clock: Clock,
    every: float = EVERY,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[Validation], None] = lambda _: None,
) -> tuple[Validation, ...]:
    """The rounds of `seconds`, one each `every` seconds, the last one at the end.

    A failed round does not end it: whether a fault passes, stays or comes back is what one wants to know. It ends when
    nobody answers any more, or when `stop` says so.
    """
    end = clock.monotonic() + seconds
    rounds: list[Validation] = []
    while True:
        begun = clock.monotonic()
        rounds.append(validate(endpoint, suite="soak", expect=expect, server_info={}, clock=clock))
        progress(rounds[-1])
        following = begun + every
        if rounds[-1].level is Level.NONE or stop() or max(following, clock.monotonic()) > end:
            return tuple(rounds)
        while (pause := following - clock.monotonic()) > 0:
            clock.sleep(min(pause, SLICE))
            if stop():
                return tuple(rounds)


def duration(text: object) -> float:
    """Seconds of `90`, `30s`, `10m`, `1h30m`. Raises UsageError."""
    parts = re.findall(r"([\d.]+)([smhd]?)", str(text).strip())
    try:
        if parts and "".join(number + unit for number, unit in parts) == str(text).strip():
            return sum(float(number) * _UNITS[unit] for number, unit in parts)
    except ValueError:
        pass
    raise UsageError(f"`{text}` is no duration", hint="write 30s, 10m or 1h30m")
