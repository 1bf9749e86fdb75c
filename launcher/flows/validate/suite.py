"""Validate a running server with one suite: send its probes within the server's limits, and judge the replies.

It works on any reachable server, whoever started it. `checks.after.probes` and `checks.after.validation` define the
requests and judge the replies, `launcher.client.probing` sends them, and `soak` repeats a suite in rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from checks.after.probes.context import Context, parse_baseline, parse_server
from checks.after.probes.entry import Probe
from checks.after.probes.every_reply import OBSERVERS, Exchange
from checks.after.probes.exchange import Answer, Ask, Measured, verdict
from checks.after.probes.expectations import ExpectError
from checks.after.probes.registry import observes, of_suite, probes
from checks.after.probes.requests import CHAT, GENERATE
from checks.after.slow_paths import add_slow_paths, slow_paths
from checks.after.validation import Validation, level_of, outcome_of, settle, summary_of
from checks.catalog.entries import entry
from checks.catalog.yaml_reader import did_you_mean
from checks.vocabulary import Match, Outcome, Verdict
from launcher.client.endpoint import Endpoint
from launcher.client.probing.pool import observe, run_probes
from launcher.client.probing.send import send
from launcher.client.server_info import generates, identify_server
from launcher.clock import Clock
from launcher.errors import UsageError
from launcher.flows.diagnose.log_view import LogView
from launcher.flows.validate.request import Subject, ValidationRequest

WITHOUT_TEXT = ("embeddings", "rerank", "classify")  # kinds for servers that generate no text


def run_suite(
    subject: Subject, request: ValidationRequest, clock: Clock, inform: Callable[[Verdict], None] = lambda _: None
) -> Validation:
    """Run the suite of a request and return its Validation.

    `inform` is called in the caller's thread, once for each verdict. Raises ExpectError for an unknown probe in `also`.
    """
    started, begun = clock.now(), clock.monotonic()
    context = _context(subject, request)

    def ask(question: Ask) -> Answer:
        live = subject.live_baseline
        return send(live if question.baseline and live else subject.endpoint, question, context.timeout, clock)

    results = _run(chosen(context, subject.ledger), context, ask, clock, inform)
    view = subject.read_log() if subject.read_log else LogView(ledger=tuple(subject.ledger))
    results = _with_slow_paths(results, context, view)
    for result in results:
        if _settled_later(result.verdict):
            inform(result.verdict)
    validation = _judge(results, context, view.ledger, started)
    return replace(validation, seconds=round(clock.monotonic() - begun, 3))


def _context(subject: Subject, request: ValidationRequest) -> Context:
    """What the probes know. A live baseline also reports how many requests it decodes concurrently."""
    server = parse_server(subject.info or _reported(subject.endpoint))
    if "is_embedding" not in server.info and not generates(subject.endpoint):
        server = replace(server, generates=False)
    context = Context(
        server=server,
        suite=request.suite,
        expect=request.expect,
        baseline=parse_baseline(request.baseline),
    )
    if subject.live_baseline is None:
        return context
    running = parse_server(_reported(subject.live_baseline)).running
    return replace(context, live_baseline=True, live_running=running)


def _reported(endpoint: Endpoint) -> Mapping[str, Any]:
    """What a server reports about itself; empty if it does not answer, which every probe then reports anyway."""
    with suppress(UsageError):
        return identify_server(endpoint)
    return {}


def chosen(context: Context, ledger: Sequence[Match]) -> list[Probe]:
    """Return the probes to run: those of the suite, those in `also`, and those that could clear a warning in the log.

    Only `standard` on a GPU gets the last kind: `smoke` must stay within its ten seconds, and a long text takes minutes
    on a CPU. Raises ExpectError for an unknown id in `also`.
    """
    suite = list(of_suite(context.suite))
    known = {probe.id: probe for probe in probes()}
    added = [name for name in context.expect.also if context.suite != "soak"]
    for name in added:
        if name not in known:
            hint = did_you_mean(name, known) or "`launch explain` lists all ids"
            raise ExpectError(f"`also` names an unknown probe `{name}`: {hint}")
    if context.suite == "standard" and context.server.info.get("device") != "cpu":
        added += _clearing(suite, known, ledger)
    ids = {probe.id for probe in suite} | set(added)
    others = WITHOUT_TEXT if context.server.generates else ()
    return [probe for probe in probes() if probe.id in ids and probe.kind not in others]


def _clearing(suite: Sequence[Probe], known: Mapping[str, Probe], ledger: Sequence[Match]) -> list[str]:
    """Probes of a kind that the suite lacks and that clears a warning in the log."""
    kinds = {probe.kind for probe in suite}
    names = [name for match in ledger if (warning := entry(match.id)) for name in warning.cleared_by]
    return [name for name in names if name in known and known[name].kind not in kinds]


def _run(
    suite: Sequence[Probe],
    context: Context,
    ask: Callable[[Ask], Answer],
    clock: Clock,
    inform: Callable[[Verdict], None],
) -> list[Measured]:
    skipped = set(context.expect.skip)
    results, to_run = [], []
    for probe in suite:
        reason = _reason_to_skip(probe, context, skipped)
        if reason is None:
            to_run.append(probe)
            continue
        results.append(Measured(verdict=verdict(probe.id, Outcome.SKIP, reason)))
        inform(results[-1].verdict)
    seen: list[Exchange] = []
    sending = [probe for probe in to_run if not observes(probe)]
    late = []
    for result in run_probes(sending, context, ask, clock, seen=seen):
        if result.verdict.figures.get("missing") == GENERATE:
            late.append(result)  # whether it is a gateway shows when the other routes have been asked
            continue
        results.append(result)
        if not _settled_later(result.verdict):
            inform(result.verdict)
    for result in late:
        results.append(_of_gateway(result, context, seen))
        inform(results[-1].verdict)
    for probe in filter(observes, to_run):
        results.append(observe(probe, context, seen))
        inform(results[-1].verdict)
    order = {probe.id: index for index, probe in enumerate(suite)}
    latest = {result.verdict.id: result for result in results}  # a probe may have been judged twice
    return sorted(latest.values(), key=lambda result: order.get(result.verdict.id, -1))


def _of_gateway(result: Measured, context: Context, seen: Sequence[Exchange]) -> Measured:
    """Skip a probe of the native route on a gateway that serves chats only: it says nothing of the server behind it."""
    chats = any(item.answer.ok and item.ask.path == CHAT for item in seen)
    if context.server.info.get("version") or not chats:
        return result
    message = f"{GENERATE} is not served here: a gateway that does not forward it"
    return replace(result, verdict=replace(result.verdict, outcome=Outcome.SKIP, message=message))


def _reason_to_skip(probe: Probe, context: Context, skipped: set[str]) -> str | None:
    if probe.id in skipped:
        return "skipped by the profile"
    if probe.level != "ready" and not context.server.generates and probe.kind not in (*WITHOUT_TEXT, *OBSERVERS):
        return "the server does not generate text"
    return None


def _with_slow_paths(results: Sequence[Measured], context: Context, view: LogView) -> list[Measured]:
    """Add the likely reasons of a slow server to the speed verdict, if speed was measured."""
    paths = slow_paths(context.server, view.ledger, view.decode)
    return [
        replace(result, verdict=add_slow_paths(result.verdict, paths)) if _settled_later(result.verdict) else result
        for result in results
    ]


def _settled_later(verdict: Verdict) -> bool:
    """Whether the log contributes to this verdict. Such a verdict is reported once, after the log has been read."""
    return bool(verdict.figures) and any(probe.id == verdict.id and probe.kind == "speed" for probe in probes())


def _judge(results: Sequence[Measured], context: Context, ledger: Sequence[Match], started: datetime) -> Validation:
    verdicts = tuple(result.verdict for result in results)
    # all probes, not only those of the suite: an unresolved warning names the probes that would clear it
    warnings = settle(ledger, verdicts, probes(), context.expect.accept_warnings, started.date())
    unresolved = sum(1 for item in warnings if item.state == "open")
    level, outcome = level_of(verdicts, probes(), unresolved), outcome_of(verdicts, unresolved)
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
