"""Validate a running server: probes of a suite, sent within its limits, judged into one Validation.

Works on any reachable server, started by us or not. What is asked and how it is judged is `checks.probes` and
`checks.validation`; the requests go through `launcher.probing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from checks.model import Match, Outcome, Verdict
from checks.probe_context import Context, parse_baseline, parse_expect, parse_server
from checks.probe_entry import SUITES, Probe
from checks.probe_model import Measured, verdict
from checks.probes import of_suite, probes
from checks.validation import Validation, level_of, outcome_of, settle, summary_of
from checks.yamlfile import did_you_mean
from launcher.clock import Clock
from launcher.endpoint import Endpoint
from launcher.errors import LauncherError, UsageError
from launcher.probing.pool import run_probes
from launcher.probing.send import send


def validate(  # noqa: PLR0913 - the flow's whole input, all of it by keyword
    endpoint: Endpoint,
    *,
    suite: str,
    expect: Mapping[str, Any],
    server_info: Mapping[str, Any],
    clock: Clock,
    ledger: Sequence[Match] = (),
    baseline: Mapping[str, Any] | None = None,
    progress: Callable[[Verdict], None] | None = None,
) -> Validation:
    """Run a suite. `server_info` is what /server_info says; empty = it is asked here.

    `baseline` is an earlier validation as `checks.validation.as_dict` gives it; `progress` is called from this thread.
    Raises UsageError for an unknown suite, ExpectError (checks.probe_context) for an unknown expectation.
    """
    if suite not in SUITES:
        raise UsageError(f"unknown suite `{suite}`", hint=did_you_mean(suite, SUITES))
    started, begun = clock.now(), clock.monotonic()
    info = server_info or read_server_info(endpoint)
    context = Context(
        server=parse_server(info), suite=suite, expect=parse_expect(expect), baseline=parse_baseline(baseline)
    )
    results = _run(endpoint, of_suite(suite), context, clock, progress)
    found = _judge(results, context, ledger, started)
    return replace(found, seconds=round(clock.monotonic() - begun, 3))


def _judge(results: Sequence[Measured], context: Context, ledger: Sequence[Match], started: datetime) -> Validation:
    verdicts = tuple(result.verdict for result in results)
    # all probes, not only those of the suite: an open warning names what would clear it
    warnings = settle(ledger, verdicts, probes(), context.expect.get("accept_warnings") or {}, started.date())
    still_open = sum(1 for item in warnings if item.state == "open")
    level, outcome = level_of(verdicts, probes(), still_open), outcome_of(verdicts, still_open)
    return Validation(
        suite=context.suite,
        outcome=outcome,
        level=level,
        summary=summary_of(level, outcome, verdicts, warnings),
        verdicts=verdicts,
        warnings=warnings,
        samples={result.verdict.id: result.samples for result in results if result.samples},
        model=context.model,
        engine=context.server.version,
        started=started.isoformat(timespec="seconds"),
    )


def soak(
    endpoint: Endpoint,
    *,
    seconds: float,
    every: float,
    expect: Mapping[str, Any],
    clock: Clock,
    progress: Callable[[Validation], None] | None = None,
) -> Validation:
    """Smoke again and again for `seconds`, one round each `every` seconds; the first that fails, else the last.

    A frozen rank answers /health with 503 only after long, or never: what was ready may stop being so.
    """
    end = clock.monotonic() + seconds
    while True:
        begun = clock.monotonic()
        found = validate(endpoint, suite="smoke", expect=expect, server_info={}, clock=clock)
        if progress:
            progress(found)
        pause = every - (clock.monotonic() - begun)
        if found.outcome is Outcome.FAIL or clock.monotonic() + max(0.0, pause) >= end:
            return found
        clock.sleep(max(0.0, pause))


def read_server_info(endpoint: Endpoint, timeout: float = 10.0) -> Mapping[str, Any]:
    """/server_info, or its name before 0.5.6; empty when neither answers (the probes will say why)."""
    for path in ("/server_info", "/get_server_info"):
        try:
            reply = endpoint.get(path, timeout)
            data = reply.json() if reply.status == 200 else None
        except LauncherError:
            return {}
        if isinstance(data, Mapping):
            return data
    return {}


def _run(
    endpoint: Endpoint,
    suite: Sequence[Probe],
    context: Context,
    clock: Clock,
    progress: Callable[[Verdict], None] | None,
) -> list[Measured]:
    tell = progress or (lambda _: None)
    skipped = set(context.expect.get("skip") or ())
    results, wanted = [], []
    for probe in suite:
        reason = _reason_to_skip(probe, context, skipped)
        if reason is None:
            wanted.append(probe)
            continue
        results.append(Measured(verdict=verdict(probe.id, Outcome.SKIP, reason)))
        tell(results[-1].verdict)
    for result in run_probes(wanted, context, lambda ask: send(endpoint, ask, context.timeout, clock), clock):
        results.append(result)
        tell(result.verdict)
    order = {probe.id: index for index, probe in enumerate(suite)}
    return sorted(results, key=lambda result: order[result.verdict.id])


def _reason_to_skip(probe: Probe, context: Context, skipped: set[str]) -> str | None:
    if probe.id in skipped:
        return "the profile skips it"
    if probe.level != "ready" and not context.server.generates:
        return "the server embeds, it does not generate"
    return None
