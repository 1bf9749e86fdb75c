"""Validate a running server: probes of a suite, sent within its limits, judged into one Validation.

Works on any reachable server, started by us or not. What is asked and how it is judged is
`checks.after.probes.registry` and `checks.after.validation`; the requests go through `launcher.client.probing`. To go
on asking is `soak`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from checks.after.probes.context import Context, parse_baseline, parse_server
from checks.after.probes.entry import SUITES, Probe
from checks.after.probes.exchange import Answer, Ask, Measured, verdict
from checks.after.probes.expectations import ExpectError, parse_expect
from checks.after.probes.registry import of_suite, probes
from checks.after.slow_paths import name_in, slow_paths
from checks.after.validation import Validation, level_of, outcome_of, settle, summary_of
from checks.catalog.entries import entry
from checks.catalog.yaml_reader import did_you_mean
from checks.vocabulary import Match, Outcome, Verdict
from launcher.client.endpoint import Endpoint, EndpointForbidden, ReplyError
from launcher.client.probing.pool import run_probes
from launcher.client.probing.send import send
from launcher.clock import Clock
from launcher.errors import LauncherError, UsageError
from launcher.flows.diagnose.log_view import LogView

ABSENT = (404, 405, 501)  # statuses of a path that a server does not have


def validate(  # noqa: PLR0913 - the flow's whole input, all of it by keyword
    endpoint: Endpoint,
    *,
    suite: str,
    expect: Mapping[str, Any],
    server_info: Mapping[str, Any],
    clock: Clock,
    ledger: Sequence[Match] = (),
    read_log: Callable[[], LogView] | None = None,
    baseline: Mapping[str, Any] | None = None,
    live_baseline: Endpoint | None = None,
    progress: Callable[[Verdict], None] | None = None,
) -> Validation:
    """Run a suite. `server_info` is what /server_info says; empty = it is asked here.

    `ledger` are the warnings known before; `read_log` is asked after the probes, which may have brought new ones.
    `baseline` is an earlier validation as `checks.after.validation.as_dict` gives it, `live_baseline` a second server
    whose speed is measured in turn; `progress` is called from this thread. Raises UsageError for an unknown suite,
    ExpectError (checks.after.probes.expectations) for an unknown expectation.
    """
    if suite not in SUITES:
        raise UsageError(f"unknown suite `{suite}`", hint=did_you_mean(suite, SUITES))
    started, begun = clock.now(), clock.monotonic()
    own = Context(server=parse_server(server_info or read_server_info(endpoint)), suite=suite)
    context = _beside(replace(own, expect=parse_expect(expect), baseline=parse_baseline(baseline)), live_baseline)

    def ask(one: Ask) -> Answer:
        return send(live_baseline if one.baseline and live_baseline else endpoint, one, context.timeout, clock)

    tell = progress or (lambda _: None)
    results = _run(chosen(context, ledger), context, ask, clock, tell)
    view = read_log() if read_log else LogView(ledger=tuple(ledger))
    results = _with_slow_paths(results, context, view)
    for result in results:
        if _settled_later(result.verdict):
            tell(result.verdict)
    found = _judge(results, context, view.ledger, started)
    return replace(found, seconds=round(clock.monotonic() - begun, 3))


def _beside(context: Context, live: Endpoint | None) -> Context:
    """The context with a second server, if there is one."""
    if live is None:
        return context
    return replace(context, live_baseline=True, live_running=parse_server(read_server_info(live)).running)


def chosen(context: Context, ledger: Sequence[Match]) -> list[Probe]:
    """The probes of the suite, those that the profile adds, and what would clear an open warning and is not in it.

    Smoke stays what it is, within its ten seconds; and on a CPU a long text costs minutes.
    Raises ExpectError for an unknown id in `also`.
    """
    suite = list(of_suite(context.suite))
    known = {probe.id: probe for probe in probes()}
    wanted = [str(item) for item in context.expect.get("also") or () if context.suite != "soak"]
    for name in wanted:
        if name not in known:
            raise ExpectError(f"`also`: there is no probe `{name}`: {did_you_mean(name, known)}")
    if context.suite == "standard" and context.server.info.get("device") != "cpu":
        wanted += _clearing(suite, known, ledger)
    picked = {probe.id for probe in suite} | set(wanted)
    return [probe for probe in probes() if probe.id in picked]


def knock(endpoint: Endpoint, timeout: float = 10.0) -> Mapping[str, Any]:
    """/server_info, or its name before 0.5.6; where a proxy hides both, the model that /v1/models lists.

    Empty when nobody answers in time (the probes will say why). Raises EndpointForbidden for a key that is missing or
    wrong, UsageError where something else than SGLang answers: nothing more is worth asking then.
    """
    strange = []
    for path in ("/server_info", "/get_server_info", "/v1/models"):
        try:
            reply = endpoint.get(path, timeout)
            data = reply.json() if reply.status == 200 else None
        except ReplyError:
            strange.append(f"{path} answers no JSON")
            continue
        except EndpointForbidden:
            raise
        except LauncherError:
            return {}
        if reply.status in ABSENT:
            strange.append(f"{path} answers {reply.status}")
        if isinstance(data, Mapping):
            return _listed(data) if path == "/v1/models" else data
    if len(strange) == 3:
        hint = "expected http://host:port of an SGLang server, without a path"
        raise UsageError(f"http://{endpoint.address} is no SGLang server: {', '.join(strange)}", hint=hint)
    return {}


def _listed(models: Mapping[str, Any]) -> Mapping[str, Any]:
    items = models.get("data")
    first = items[0] if isinstance(items, list) and items else None
    return {"served_model_name": first["id"]} if isinstance(first, Mapping) and "id" in first else {}


def read_server_info(endpoint: Endpoint) -> Mapping[str, Any]:
    """As `knock`, and empty where that raises, which every probe then says for itself."""
    try:
        return knock(endpoint)
    except UsageError:
        return {}


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
    tell: Callable[[Verdict], None],
) -> list[Measured]:
    skipped = set(context.expect.get("skip") or ())
    results, wanted = [], []
    for probe in suite:
        reason = _reason_to_skip(probe, context, skipped)
        if reason is None:
            wanted.append(probe)
            continue
        results.append(Measured(verdict=verdict(probe.id, Outcome.SKIP, reason)))
        tell(results[-1].verdict)
    for result in run_probes(wanted, context, ask, clock):
        results.append(result)
        if not _settled_later(result.verdict):
            tell(result.verdict)
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
        replace(result, verdict=name_in(result.verdict, paths)) if _settled_later(result.verdict) else result
        for result in results
    ]


def _settled_later(found: Verdict) -> bool:
    """Whether the log has a say in it: told of once, when it is settled."""
    return bool(found.figures) and any(probe.id == found.id and probe.kind == "speed" for probe in probes())


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
