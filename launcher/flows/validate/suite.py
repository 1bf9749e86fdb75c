"""Validate a running server: probes of a suite, sent within its limits, judged into one Validation.

Works on any reachable server, started by us or not. What is asked and how it is judged is in `checks.after.probes` and
`checks.after.validation`; the requests go through `launcher.client.probing`. Repeated rounds are `soak`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from checks.after.probes.context import Context, parse_baseline, parse_server
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Measured, verdict
from checks.after.probes.expectations import ExpectError
from checks.after.probes.registry import of_suite, probes
from checks.after.slow_paths import add_slow_paths, slow_paths
from checks.after.validation import Validation, level_of, outcome_of, settle, summary_of
from checks.catalog.entries import entry
from checks.catalog.yaml_reader import did_you_mean
from checks.vocabulary import Match, Outcome, Verdict
from launcher.client.endpoint import Endpoint
from launcher.client.probing.pool import run_probes
from launcher.client.probing.send import send
from launcher.client.server_info import identify_server
from launcher.clock import Clock
from launcher.errors import UsageError
from launcher.flows.diagnose.log_view import LogView
from launcher.flows.validate.request import Subject, ValidationRequest


def run_suite(
    subject: Subject, request: ValidationRequest, clock: Clock, inform: Callable[[Verdict], None] = lambda _: None
) -> Validation:
    """Run the suite of a request. `inform` is called from this thread.

    Raises ExpectError for an unknown probe in `also`.
    """
    started, begun = clock.now(), clock.monotonic()
    context = _context(subject, request)

    def ask(one: Ask) -> Answer:
        live = subject.live_baseline
        return send(live if one.baseline and live else subject.endpoint, one, context.timeout, clock)

    results = _run(chosen(context, subject.ledger), context, ask, clock, inform)
    view = subject.read_log() if subject.read_log else LogView(ledger=tuple(subject.ledger))
    results = _with_slow_paths(results, context, view)
    for result in results:
        if _settled_later(result.verdict):
            inform(result.verdict)
    validation = _judge(results, context, view.ledger, started)
    return replace(validation, seconds=round(clock.monotonic() - begun, 3))


def _context(subject: Subject, request: ValidationRequest) -> Context:
    """What the probes know; a second server is asked how many requests it decodes at once."""
    context = Context(
        server=parse_server(subject.info or _reported(subject.endpoint)),
        suite=request.suite,
        expect=request.expect,
        baseline=parse_baseline(request.baseline),
    )
    if subject.live_baseline is None:
        return context
    running = parse_server(_reported(subject.live_baseline)).running
    return replace(context, live_baseline=True, live_running=running)


def _reported(endpoint: Endpoint) -> Mapping[str, Any]:
    """What a server reports about itself; empty where it cannot be asked, which every probe then reports by itself."""
    with suppress(UsageError):
        return identify_server(endpoint)
    return {}


def chosen(context: Context, ledger: Sequence[Match]) -> list[Probe]:
    """The probes of the suite, those that the profile adds, and what would clear an open warning and is not in it.

    Smoke stays what it is, within its ten seconds; and on a CPU a long text costs minutes.
    Raises ExpectError for an unknown id in `also`.
    """
    suite = list(of_suite(context.suite))
    known = {probe.id: probe for probe in probes()}
    wanted = [name for name in context.expect.also if context.suite != "soak"]
    for name in wanted:
        if name not in known:
            raise ExpectError(f"`also`: there is no probe `{name}`: {did_you_mean(name, known)}")
    if context.suite == "standard" and context.server.info.get("device") != "cpu":
        wanted += _clearing(suite, known, ledger)
    picked = {probe.id for probe in suite} | set(wanted)
    return [probe for probe in probes() if probe.id in picked]


def _clearing(suite: Sequence[Probe], known: Mapping[str, Probe], ledger: Sequence[Match]) -> list[str]:
    """Probes of kinds that the suite lacks and without which a warning of the log could not be cleared."""
    kinds = {probe.kind for probe in suite}
    names = [name for match in ledger if (found := entry(match.id)) for name in found.cleared_by]
    return [name for name in names if name in known and known[name].kind not in kinds]


def _run(
    suite: Sequence[Probe],
    context: Context,
    ask: Callable[[Ask], Answer],
    clock: Clock,
    inform: Callable[[Verdict], None],
) -> list[Measured]:
    skipped = set(context.expect.skip)
    results, wanted = [], []
    for probe in suite:
        reason = _reason_to_skip(probe, context, skipped)
        if reason is None:
            wanted.append(probe)
            continue
        results.append(Measured(verdict=verdict(probe.id, Outcome.SKIP, reason)))
        inform(results[-1].verdict)
    for result in run_probes(wanted, context, ask, clock):
        results.append(result)
        if not _settled_later(result.verdict):
            inform(result.verdict)
    order = {probe.id: index for index, probe in enumerate(suite)}
    latest = {result.verdict.id: result for result in results}  # of a probe that was judged again
    return sorted(latest.values(), key=lambda result: order.get(result.verdict.id, -1))


def _reason_to_skip(probe: Probe, context: Context, skipped: set[str]) -> str | None:
    if probe.id in skipped:
        return "the profile skips it"
    if probe.level != "ready" and not context.server.generates:
        return "the server embeds, it does not generate"
    return None


def _with_slow_paths(results: Sequence[Measured], context: Context, view: LogView) -> list[Measured]:
    """The speed's verdict names what may be its reason; a speed that was not measured has none."""
    paths = slow_paths(context.server, view.ledger, view.decode)
    return [
        replace(result, verdict=add_slow_paths(result.verdict, paths)) if _settled_later(result.verdict) else result
        for result in results
    ]


def _settled_later(found: Verdict) -> bool:
    """Whether the log has a say in it: told of once, when it is settled."""
    return bool(found.figures) and any(probe.id == found.id and probe.kind == "speed" for probe in probes())


def _judge(results: Sequence[Measured], context: Context, ledger: Sequence[Match], started: datetime) -> Validation:
    verdicts = tuple(result.verdict for result in results)
    # all probes, not only those of the suite: an open warning names what would clear it
    warnings = settle(ledger, verdicts, probes(), context.expect.accept_warnings, started.date())
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
