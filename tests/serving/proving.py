"""Runs witnesses: each must see its fault, and nothing on a healthy server."""

from __future__ import annotations

import time
from collections.abc import Iterable

from msgspec import Struct

from tests.serving.asking import Asker, NotApplicable
from tests.serving.oddities import ODDITIES
from tests.serving.planting import Fault
from tests.serving.server import FEATURES, serving
from tests.serving.table import FAULTS
from tests.serving.witness import UNREADABLE


class Proof(Struct, frozen=True):
    """What one witness saw."""

    name: str
    shown: bool | None
    healthy: bool | None
    seconds: float
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the fault was seen where it is, and not where it is not."""
        return self.shown is True and self.healthy is False


def _look(fault: Fault, url: str, key: str = "") -> tuple[bool | None, str]:
    assert fault.witness is not None
    try:
        return fault.witness(Asker(url, key)), ""
    except NotApplicable as reason:
        return None, f"not applicable: {reason}"
    except UNREADABLE as error:
        return True, f"by an error: {error!r}"


def prove(names: Iterable[str], speed: float = 0.0) -> Iterable[Proof]:
    """Yield what the witness of each fault sees with the fault, and without it."""
    for name in names:
        fault = FAULTS[name]
        begun = time.monotonic()
        given = {key: value for need in sorted(fault.needs) for key, value in FEATURES[need].items()}
        options = {"speed": speed, **given}
        with serving([fault], **options) as (url, state):
            shown, note = _look(fault, url)
            note += f" inside: {state.errors[:1]}" if state.errors else ""
        with serving(**options) as (url, state):
            healthy, more = _look(fault, url)
            more += f" inside, healthy: {state.errors[:1]}" if state.errors else ""
        yield Proof(name, shown, healthy, time.monotonic() - begun, note + more)


def prove_odd(odd: str, names: Iterable[str], speed: float = 0.0) -> Iterable[Proof]:
    """Yield what the witnesses of faults see on a server that is odd but healthy."""
    options = {"speed": speed} if "speed" not in ODDITIES[odd].options else {}
    with serving(odd=odd, **options) as (url, state):
        for name in names:
            begun = time.monotonic()
            healthy, note = _look(FAULTS[name], url, state.options.api_key)
            yield Proof(name, None, healthy, time.monotonic() - begun, note)
