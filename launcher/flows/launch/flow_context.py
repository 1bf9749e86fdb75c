"""The services that every flow on a host uses. The command line opens them once and passes them on as one record."""

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
    """Receives the progress of a flow as it happens; the command line shows it."""

    def prepared(self, prepared: Prepared, run: Run | None) -> None:
        """Called when the plan has been made and judged. `run` is None for a dry run."""

    def event(self, event: Event) -> None:
        """Called for each event of the run."""

    def verdict(self, verdict: Verdict) -> None:
        """Called for each probe that has been judged."""

    def say(self, text: str) -> None:
        """Called with one line of text on the current step."""


class FlowContext(Struct, frozen=True, kw_only=True):
    """The connection to the host, the runs stored on this machine, the clock, and the observer."""

    transport: Transport
    store: RunStore
    clock: Clock
    observer: Observer
