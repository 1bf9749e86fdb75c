"""The context of a flow for tests: a real transport, the stand-in engine, a RunStore in a temporary folder."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import Struct, field

from checks.vocabulary import Verdict
from launcher.clock import SystemClock
from launcher.flows.launch.flow_context import FlowContext
from launcher.flows.launch.launch import LaunchOutcome, Options, launch
from launcher.flows.launch.prepare import Prepared
from launcher.profile.file import Profile
from launcher.profile.resolve import override, resolve
from launcher.run.events import Event
from launcher.run.store import Run, RunStore
from launcher.transport.base import Transport
from launcher.transport.inventory import Host
from tests.support.ports import free_port

FAKE_ENGINE = Path(__file__).parent / "fake_engine"


class Witness(Struct):
    """An Observer that records everything it receives."""

    events: list[Event] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    plans: list[Prepared] = field(default_factory=list)

    def prepared(self, prepared: Prepared, run: Run | None) -> None:
        self.plans.append(prepared)

    def event(self, event: Event) -> None:
        self.events.append(event)

    def verdict(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)

    def say(self, text: str) -> None:
        self.messages.append(text)

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


class Bench(Struct, frozen=True, kw_only=True):
    """One host with the stand-in engine, and everything needed to launch on it."""

    folder: Path
    transport: Transport
    host: Host
    context: FlowContext
    witness: Witness
    port: int

    def profile(self, mode: str = "healthy", *sets: str, envs: tuple[str, ...] = ()) -> Profile:
        (self.folder / "profiles").mkdir(exist_ok=True)
        (self.folder / "profiles" / "fake.yaml").write_text(
            f"why: stand-in\nmodel: {{path: {self.folder}, served-name: fake}}\nflags: {{port: {self.port}}}\n"
            f"env: {{FAKE_ENGINE: {mode}}}\n"
        )
        return override(resolve("fake", (self.folder / "profiles",)), sets, [], envs)

    def launch(self, mode: str = "healthy", *sets: str, envs: tuple[str, ...] = (), **options: bool) -> LaunchOutcome:
        launch_options = Options(**{"validate": False, "ignore_findings": True, **options})
        return launch(self.context, self.profile(mode, *sets, envs=envs), self.host, launch_options)


def bench(folder: Path, transport: Transport) -> Bench:
    """Return a bench that stores its runs under `folder`."""
    witness = Witness()
    host = Host(
        name=transport.name, python=sys.executable, work_dir=str(folder / "work"), env={"PYTHONPATH": str(FAKE_ENGINE)}
    )
    context = FlowContext(transport=transport, store=RunStore(folder / "runs"), clock=SystemClock(), observer=witness)
    return Bench(folder=folder, transport=transport, host=host, context=context, witness=witness, port=free_port())
