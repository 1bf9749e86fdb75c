"""From a server that answers to a verdict on it: suite, deeper stage, soaking; for launches, attaches and `validate`.

What a profile's `expect` says to the launcher itself (suite, baseline, soak, deeper) is read here; the rest is for the
probes.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from checks.after.external_evals import Target
from checks.after.probes.context import Context, parse_server
from checks.after.probes.expectations import parse_expect
from checks.after.soak_rounds import ID as SOAK
from checks.after.soak_rounds import with_rounds
from checks.after.validation import Validation, with_verdicts
from checks.vocabulary import Match, Outcome, Verdict
from launcher.client.endpoint import Endpoint
from launcher.client.probing.forward import forwarded
from launcher.clock import Clock
from launcher.errors import UsageError
from launcher.flows.diagnose.log_view import LogView
from launcher.flows.validate import stored_baselines
from launcher.flows.validate.run_evals import Bench, deeper
from launcher.flows.validate.soak import EVERY, duration, soak
from launcher.flows.validate.suite import validate
from launcher.run.store import RunStore
from launcher.transport.base import Transport
from launcher.transport.local import LocalTransport


class Wishes(Struct, frozen=True, kw_only=True):
    """What is to be proved."""

    suite: str
    expect: Mapping[str, Any]  # for the probes
    baseline: Mapping[str, Any] | None = None  # a stored validation
    missing: str = ""  # name of the baseline that the profile wants and that does not exist
    soak: float = 0.0  # seconds
    every: float = EVERY  # seconds
    deeper: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Subject(Struct, frozen=True, kw_only=True):
    """The server under test, and the ways to it."""

    endpoint: Endpoint
    transport: Transport
    host: str
    port: int
    info: Mapping[str, Any]
    ledger: Sequence[Match] = ()
    read_log: Callable[[], LogView] | None = None
    live_baseline: Endpoint | None = None
    folder: Path | None = None  # where other harnesses leave their results
    gone: Callable[[], bool] = lambda: False  # the process has ended: nothing more can be asked


def wishes_of(expect: Mapping[str, Any], store: RunStore, profile_path: str = "") -> Wishes:
    """A profile's `expect`, checked before anything is started. Raises UsageError, ExpectError.

    A baseline that does not exist is no error: the first run of a profile is the one that it is made from.
    """
    own = parse_expect(expect)
    stored, missing = None, ""
    if name := str(own.get("baseline") or ""):
        try:
            stored = stored_baselines.find(name, stored_baselines.folders(profile_path), store).validation
        except UsageError:
            missing = name
    return Wishes(
        suite=str(own.get("suite", "smoke")),
        expect=own,
        baseline=stored,
        missing=missing,
        soak=duration(own["soak"]) if own.get("soak") else 0.0,
        deeper=own.get("deeper", {}),
    )


def prove(subject: Subject, wanted: Wishes, clock: Clock, tell: Callable[[Verdict], None]) -> Validation:
    """The whole judgement. `tell` hears of each verdict as it falls, of a soak only what failed and the end."""
    found = validate(
        subject.endpoint,
        suite=wanted.suite,
        expect=wanted.expect,
        server_info=subject.info,
        clock=clock,
        ledger=subject.ledger,
        read_log=subject.read_log,
        baseline=wanted.baseline,
        live_baseline=subject.live_baseline,
        progress=tell,
    )
    more: list[Verdict] = []
    if wanted.missing:
        message = f"there is no baseline `{wanted.missing}` yet: `launch baseline save RUN {wanted.missing}` makes one"
        more.append(Verdict(id="baseline", outcome=Outcome.INCONCLUSIVE, message=message))
    if wanted.deeper and not subject.gone():
        more += _deeper(subject, wanted)
    for verdict in more:
        tell(verdict)
    found = with_verdicts(found, more) if more else found
    if wanted.soak and found.outcome is not Outcome.FAIL and not subject.gone():
        found = _soaked(subject, wanted, found, clock, tell)
    return found


def _soaked(
    subject: Subject, wanted: Wishes, found: Validation, clock: Clock, tell: Callable[[Verdict], None]
) -> Validation:
    def failures(one: Validation) -> None:
        for verdict in one.verdicts:
            if verdict.outcome in (Outcome.FAIL, Outcome.ERROR):
                tell(verdict)

    begun = clock.monotonic()
    rounds = soak(
        subject.endpoint,
        seconds=wanted.soak,
        every=min(wanted.every, wanted.soak / 4),
        expect=wanted.expect,
        clock=clock,
        stop=subject.gone,
        progress=failures,
    )
    after = with_rounds(found, rounds, clock.monotonic() - begun)
    tell(next(verdict for verdict in after.verdicts if verdict.id == SOAK))
    return after


def _deeper(subject: Subject, wanted: Wishes) -> list[Verdict]:
    context = Context(server=parse_server(subject.info), suite=wanted.suite, expect=wanted.expect)
    with forwarded(subject.transport, subject.host, subject.port) as port, _results(subject.folder) as folder:
        target = Target(
            url=f"http://127.0.0.1:{port}",
            model=context.model,
            concurrency=context.concurrency,
            chat=wanted.expect.get("chat") is not False,
        )
        bench = Bench(local=LocalTransport(), folder=folder, api_key=subject.endpoint.api_key or "")
        return deeper(bench, target, wanted.deeper)


@contextlib.contextmanager
def _results(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder / "deeper"
        return
    with tempfile.TemporaryDirectory(prefix="sglang-launcher-") as made:
        yield Path(made)
