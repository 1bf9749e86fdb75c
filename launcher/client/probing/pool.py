"""Running probes at once without ever having more requests in flight than the server decodes together.

Two pools of threads: probes advance in one, their requests are sent in the other, whose size is the server's limit.
A probe that measures something runs alone. Judging is `checks`; a probe that raises becomes an `error` verdict.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from msgspec.structs import replace

from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Judged, Measured, Wave, verdict
from checks.after.probes.registry import script
from checks.vocabulary import Evidence, Outcome, Verdict
from launcher.client.probing.guard import GONE, LOOK_AFTER, PATIENCE, Guarded, Send
from launcher.clock import Clock

SIDE_BY_SIDE = 16  # probes that advance at once


def run_probes(
    probes: Sequence[Probe], context: Context, send: Send, clock: Clock, look_after: float = LOOK_AFTER
) -> Iterator[Measured]:
    """The judgement of each probe as it is reached: readiness first, then all that bear company, then the rest alone.

    /health waits for a sign of the scheduler; among long requests on a slow machine it would give up (20 s).
    Once the engine stands still nothing more is asked or waited for; `look_after` seconds without any answer make it
    suspect, and `health` is judged again. The caller closes the endpoint afterwards, which ends what is under way.
    """
    guarded = Guarded(send, clock, look_after, max(PATIENCE, 2 * context.concurrency))
    requests = ThreadPoolExecutor(max_workers=context.concurrency, thread_name_prefix="request")
    advancing = ThreadPoolExecutor(max_workers=SIDE_BY_SIDE, thread_name_prefix="probe")

    def one(probe: Probe) -> Measured:
        if guarded.halted and probe.level != "ready":
            return Measured(verdict=verdict(probe.id, Outcome.SKIP, f"not asked: {guarded.halted}"))
        return run_probe(probe, context, _sender(guarded, requests), clock)

    try:
        together = [probe for probe in probes if not probe.alone]
        for ready in (True, False):
            group = [probe for probe in together if (probe.level == "ready") is ready]
            for job in as_completed([advancing.submit(one, probe) for probe in group]):
                yield job.result()
        for probe in probes:
            if probe.alone:
                yield one(probe)
        if guarded.down:  # /health was well at the beginning and is not any more
            message = f"while it was being probed: {guarded.halted}"
            yield Measured(verdict=verdict("health", Outcome.FAIL, message))
    finally:
        guarded.halted = guarded.halted or "the validation was broken off"
        advancing.shutdown(wait=False, cancel_futures=True)
        requests.shutdown(wait=False, cancel_futures=True)


def run_probe(probe: Probe, context: Context, send_all: Callable[[Wave], list[Answer]], clock: Clock) -> Measured:
    """One probe to its end. Whatever goes wrong inside it is our fault: an `error` verdict, with the place."""
    started = clock.monotonic()
    try:
        judged = _advance(probe, context, send_all)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = Evidence(text=f"{type(error).__name__}: {error}", source=f"{place.filename}:{place.lineno}")
        judged = verdict(probe.id, Outcome.ERROR, "the check itself broke", [where])
    result = judged if isinstance(judged, Measured) else Measured(verdict=judged)
    return replace(result, verdict=replace(result.verdict, seconds=round(clock.monotonic() - started, 3)))


def _advance(probe: Probe, context: Context, send_all: Callable[[Wave], list[Answer]]) -> Judged:
    steps = script(probe, context)
    refused: Verdict | None = None
    try:
        wave = next(steps)
        while True:
            answers = send_all(wave)
            refused = refused or _nobody_there(probe, answers)
            wave = steps.send(answers)
    except StopIteration as end:
        judged: Judged = end.value
        return refused or judged


def _nobody_there(probe: Probe, answers: Sequence[Answer]) -> Verdict | None:
    if answers and all(answer.fault in GONE for answer in answers):
        judged = verdict(probe.id, Outcome.FAIL, f"nobody answers: {answers[0].error}")
        return replace(judged, unreachable=True)
    return None


def _sender(guarded: Guarded, requests: ThreadPoolExecutor) -> Callable[[Wave], list[Answer]]:
    def send_all(wave: Wave) -> list[Answer]:
        jobs: list[Future[Answer]] = [Future() for _ in wave]
        lanes: dict[int, list[tuple[Ask, Future[Answer]]]] = {}
        for row, (ask, job) in enumerate(zip(wave, jobs, strict=True)):
            lanes.setdefault(ask.lane if ask.lane >= 0 else -1 - row, []).append((ask, job))
        for lane in lanes.values():
            if lane[0][0].payload is None:  # a GET costs the scheduler nothing and must not wait behind long answers
                _one_after_the_other(guarded, lane)
            else:
                requests.submit(_one_after_the_other, guarded, lane)
        return [guarded.wait(ask, job) for ask, job in zip(wave, jobs, strict=True)]

    return send_all


def _one_after_the_other(send: Send, lane: Sequence[tuple[Ask, Future[Answer]]]) -> None:
    for ask, job in lane:
        try:
            job.set_result(send(ask))
        except Exception as error:  # whoever waits for it gets it
            job.set_exception(error)
