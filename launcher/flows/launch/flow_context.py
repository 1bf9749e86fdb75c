"""What every flow around a host works with, opened once by the command line and handed on as one record."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from checks.vocabulary import Verdict
from launcher.clock import Clock
from launcher.flows.launch.prepare import Prepared
from launcher.run.events import Event
from launcher.run.store import Run, RunStore
from launcher.transport.base import Transport


class Observer(Protocol):
    """Who is informed of what happens, as it happens."""

    def prepared(self, prepared: Prepared, run: Run | None) -> None:
        """The plan is made and judged; `run` is None for a dry run."""

    def event(self, event: Event) -> None:
        """Something happened to the run."""

    def verdict(self, verdict: Verdict) -> None:
        """A probe was judged."""

    def say(self, text: str) -> None:
        """One line about what is going on."""


class FlowContext(Struct, frozen=True, kw_only=True):
    """The connection to the host, the runs of this machine, the time, and who is informed."""

    transport: Transport
    store: RunStore
    clock: Clock
    observer: Observer
