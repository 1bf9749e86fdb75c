"""Validate a running server completely: probe suite, external evaluations, soak.

`launch`, `attach` and `validate` all use it; each stage has a module of its own in this folder.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from checks.after.external_evals import Target
from checks.after.probes.context import Context, parse_server
from checks.after.soak_rounds import ID as SOAK
from checks.after.soak_rounds import with_rounds
from checks.after.validation import Validation, with_verdicts
from checks.vocabulary import Outcome, Verdict
from launcher.client.probing.forward import forwarded
from launcher.clock import Clock
from launcher.flows.validate.request import Subject, ValidationRequest
from launcher.flows.validate.run_evals import Bench, deeper
from launcher.flows.validate.soak import soak
from launcher.flows.validate.suite import run_suite
from launcher.transport.local import LocalTransport

Inform = Callable[[Verdict], None]


def prove(subject: Subject, request: ValidationRequest, clock: Clock, inform: Inform) -> Validation:
    """Run every stage of the request and return one Validation.

    `inform` receives each verdict as soon as it is reached; of a soak, only failures and the final verdict.
    Raises UsageError or ExpectError for a request that cannot be met.
    """
    result = run_suite(subject, request, clock, inform)
    added: list[Verdict] = []
    if name := request.missing_baseline:
        message = f"baseline `{name}` does not exist yet: create it with `launch baseline save RUN {name}`"
        added.append(Verdict(id="baseline", outcome=Outcome.INCONCLUSIVE, message=message))
    if request.expect.deeper and not subject.gone():
        added += _deeper(subject, request)
    for verdict in added:
        inform(verdict)
    result = with_verdicts(result, added) if added else result
    if request.expect.soak and result.outcome is not Outcome.FAIL and not subject.gone():
        result = _soaked(subject, request, result, clock, inform)
    return result


def _soaked(
    subject: Subject, request: ValidationRequest, result: Validation, clock: Clock, inform: Inform
) -> Validation:
    def inform_of_failures(soak_round: Validation) -> None:
        for verdict in soak_round.verdicts:
            if verdict.outcome in (Outcome.FAIL, Outcome.ERROR):
                inform(verdict)

    begun = clock.monotonic()
    rounds = soak(subject, request, clock, inform_of_failures)
    validation = with_rounds(result, rounds, clock.monotonic() - begun)
    inform(next(verdict for verdict in validation.verdicts if verdict.id == SOAK))
    return validation


def _deeper(subject: Subject, request: ValidationRequest) -> list[Verdict]:
    context = Context(server=parse_server(subject.info), suite=request.suite, expect=request.expect)
    with forwarded(subject.transport, subject.host, subject.port) as port, _results(subject.folder) as folder:
        target = Target(
            url=f"http://127.0.0.1:{port}",
            model=context.model,
            concurrency=context.concurrency,
            chat=request.expect.chat,
        )
        bench = Bench(local=LocalTransport(), folder=folder, api_key=subject.endpoint.api_key or "")
        return deeper(bench, target, request.expect.deeper)


@contextlib.contextmanager
def _results(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder / "deeper"
        return
    with tempfile.TemporaryDirectory(prefix="sglang-launcher-") as temporary:
        yield Path(temporary)
