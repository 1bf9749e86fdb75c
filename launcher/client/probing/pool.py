"""Runs probes concurrently, without ever having more requests in flight than the server runs concurrently.

There are two thread pools: probes advance in one, their requests are sent in the other, whose size is the server's
limit. A probe that measures something runs exclusively. `checks` judges the replies; a probe that raises becomes an
`error` verdict.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from msgspec.structs import replace

from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.every_reply import OBSERVERS, Exchange
from checks.after.probes.exchange import Answer, Ask, Judged, Measured, Wave, verdict
from checks.after.probes.registry import script
from checks.vocabulary import Evidence, Outcome, Verdict
from launcher.client.probing.guard import GONE, LOOK_AFTER, PATIENCE, Guarded, Send
from launcher.clock import Clock

CONCURRENT_PROBES = 16


def run_probes(
    probes: Sequence[Probe],
    context: Context,
    send: Send,
    clock: Clock,
    look_after: float = LOOK_AFTER,
    seen: list[Exchange] | None = None,
) -> Iterator[Measured]:
    """Yield the judgement of each probe: readiness, then the probes that may run concurrently, then the exclusive ones.

    Readiness is first because /health waits for the scheduler and would time out (20 s) among long requests on a slow
    machine. After `look_after` seconds without any answer `health` is judged again; once the engine hangs, no further
    request is sent or waited for. The caller then closes the endpoint, which ends the requests in flight. `seen`
    collects every request with its reply.
    """
    guarded = Guarded(send, clock, look_after, max(PATIENCE, 2 * context.concurrency))
    requests = ThreadPoolExecutor(max_workers=context.concurrency, thread_name_prefix="request")
    advancing = ThreadPoolExecutor(max_workers=CONCURRENT_PROBES, thread_name_prefix="probe")

    def measure(probe: Probe) -> Measured:
        if guarded.halted and probe.level != "ready":
            return Measured(verdict=verdict(probe.id, Outcome.SKIP, f"not run: {guarded.halted}"))
        return run_probe(probe, context, _sender(guarded, requests), clock, seen)

    try:
        concurrent = [probe for probe in probes if not probe.alone]
        for ready in (True, False):
            group = [probe for probe in concurrent if (probe.level == "ready") is ready]
            for job in as_completed([advancing.submit(measure, probe) for probe in group]):
                yield job.result()
        for probe in probes:
            if probe.alone:
                yield measure(probe)
        if guarded.down:  # /health was well at the beginning but no longer is
            message = f"while it was being probed: {guarded.halted}"
            yield Measured(verdict=verdict("health", Outcome.FAIL, message))
    finally:
        guarded.halted = guarded.halted or "the validation was aborted"
        advancing.shutdown(wait=False, cancel_futures=True)
        requests.shutdown(wait=False, cancel_futures=True)


def run_probe(
    probe: Probe,
    context: Context,
    send_all: Callable[[Wave], list[Answer]],
    clock: Clock,
    seen: list[Exchange] | None = None,
) -> Measured:
    """Run one probe to its end. An exception in it is a bug of the launcher: an `error` verdict with its position."""
    started = clock.monotonic()
    try:
        judged = _advance(probe, context, send_all, [] if seen is None else seen)
    except Exception as error:
        judged = internal_error(probe, error)
    result = judged if isinstance(judged, Measured) else Measured(verdict=judged)
    return replace(result, verdict=replace(result.verdict, seconds=round(clock.monotonic() - started, 3)))


def observe(probe: Probe, context: Context, seen: Sequence[Exchange]) -> Measured:
    """Let an observer judge all replies; an exception in it is an `error` verdict, as in a probe."""
    try:
        judged = OBSERVERS[probe.kind](probe, context, seen)
    except Exception as error:
        judged = internal_error(probe, error)
    return Measured(verdict=judged)


def internal_error(probe: Probe, error: Exception) -> Verdict:
    """Return the verdict of a probe that raised, with the place."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = Evidence(text=f"{type(error).__name__}: {error}", source=f"{place.filename}:{place.lineno}")
    return verdict(probe.id, Outcome.ERROR, "internal error in this probe", [where])


def _advance(probe: Probe, context: Context, send_all: Callable[[Wave], list[Answer]], seen: list[Exchange]) -> Judged:
    steps = script(probe, context)
    unreachable: Verdict | None = None
    try:
        wave = next(steps)
        while True:
            answers = send_all(wave)
            asked = zip(wave, answers, strict=True)
            seen += [Exchange(probe=probe.id, ask=ask, answer=answer) for ask, answer in asked if not ask.baseline]
            unreachable = unreachable or _unreachable_verdict(probe, answers)
            wave = steps.send(answers)
    except StopIteration as end:
        judged: Judged = end.value
        return unreachable or judged


def _unreachable_verdict(probe: Probe, answers: Sequence[Answer]) -> Verdict | None:
    if answers and all(answer.fault in GONE for answer in answers):
        judged = verdict(probe.id, Outcome.FAIL, f"the server did not answer: {answers[0].error}")
        return replace(judged, unreachable=True)
    return None


def _sender(guarded: Guarded, requests: ThreadPoolExecutor) -> Callable[[Wave], list[Answer]]:
    def send_all(wave: Wave) -> list[Answer]:
        jobs: list[Future[Answer]] = [Future() for _ in wave]
        sequences: dict[int, list[tuple[Ask, Future[Answer]]]] = {}
        for row, (ask, job) in enumerate(zip(wave, jobs, strict=True)):
            sequences.setdefault(ask.lane if ask.lane >= 0 else -1 - row, []).append((ask, job))
        for sequence in sequences.values():
            if sequence[0][0].payload is None:  # a GET costs the scheduler nothing; it must not wait for long answers
                _send_in_order(guarded, sequence)
            else:
                requests.submit(_send_in_order, guarded, sequence)
        return [guarded.wait(ask, job) for ask, job in zip(wave, jobs, strict=True)]

    return send_all


def _send_in_order(send: Send, sequence: Sequence[tuple[Ask, Future[Answer]]]) -> None:
    for ask, job in sequence:
        try:
            job.set_result(send(ask))
        except Exception as error:  # raised again in the thread that waits for the answer
            job.set_exception(error)
