"""Launch a profile, the product's main flow: collect host facts, check, start, watch, prove ready, probe, judge.

Straight-line code over Transport, Clock and RunStore. It prints nothing; an Observer receives its progress.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import asdict, replace

from checks.after.validation import Validation, as_dict
from checks.vocabulary import Diagnosis, Outcome
from launcher.errors import LauncherError, PlanRefused
from launcher.flows.diagnose.run_diagnosis import diagnose_run, log_view
from launcher.flows.launch.engine_dry_run import DryRun, differences, dry_run
from launcher.flows.launch.flow_context import FlowContext
from launcher.flows.launch.prepare import Prepared, prepare, settle
from launcher.flows.launch.watching import Ending, Watching
from launcher.flows.validate.prove import prove
from launcher.flows.validate.request import Subject, ValidationRequest, request_from
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.launch_script import launch_script
from launcher.profile.file import EnvSetting, Profile, Setting
from launcher.run import remote
from launcher.run.events import Started
from launcher.run.state import State
from launcher.run.store import Run, RunStore
from launcher.secrets import Masker, fetch, without_secrets
from launcher.transport.inventory import Host

WATCHED = (State.READY, State.VALIDATED)


class Options(Struct, frozen=True, kw_only=True):
    """The settings of a launch that the command line may change."""

    dry_run: bool = False
    detach: bool = False  # return as soon as the process runs
    validate: bool = True
    ignore_findings: bool = False  # start in spite of error findings
    soak: float = 0.0  # seconds to keep probing after validation; 0: as the profile says
    ask_engine: bool = True  # do the engine's own dry run on the host first, unless these arguments passed before


class LaunchOutcome(Struct, frozen=True, kw_only=True):
    """How a launch ended."""

    run: Run | None
    state: State
    reason: str
    diagnosis: Diagnosis | None = None
    validation: Validation | None = None

    @property
    def healthy(self) -> bool:
        """Whether the server is ready and its validation, if there was one, passed."""
        return self.state in WATCHED and (self.validation is None or self.validation.outcome is Outcome.PASS)


def launch(context: FlowContext, profile: Profile, host: Host, options: Options) -> LaunchOutcome:
    """Launch the profile on the host and return how it ended.

    Raises ExpectError for a faulty `expect`, and LauncherError for failures outside the run itself (host unreachable,
    port taken…).
    """
    request = _validation_request(context, profile, options)
    prepared = judged_by_engine(context, prepare(context.transport, profile, host, context.clock.now()), options)
    if options.dry_run:
        return _report_dry_run(context, prepared)
    secrets = fetch(prepared.plan.secret_env)
    run = _record(context, prepared)
    context.observer.prepared(prepared, run)
    if prepared.errors and not options.ignore_findings:
        return _refuse(context, run, prepared)
    _start(context, prepared, run, secrets)
    if options.detach:
        return LaunchOutcome(run=run, state=State.STARTING, reason=f"started; `launch attach {run.id}` follows it")
    return follow_run(context, Watching(run, context, Masker(secrets.values())), request, probe=options.validate)


def _validation_request(context: FlowContext, profile: Profile, options: Options) -> ValidationRequest:
    """What the profile expects of the server. Raises ExpectError, before anything is started."""
    request = request_from(profile.expectations, context.store, profile.path)
    return replace(request, expect=replace(request.expect, soak=options.soak)) if options.soak else request


def judged_by_engine(context: FlowContext, prepared: Prepared, options: Options) -> Prepared:
    """Add the engine's own dry run to the preparation, unless it is disabled or these arguments passed before."""
    if not options.ask_engine or prepared.errors or passed_before(context.store, prepared.plan):
        return prepared
    context.observer.say("asking the engine whether it accepts these arguments (takes as long as importing it)")
    return with_dry_run(prepared, dry_run(context.transport, prepared), context.clock.now().date())


def _report_dry_run(context: FlowContext, prepared: Prepared) -> LaunchOutcome:
    context.observer.prepared(prepared, None)
    if prepared.errors:
        return LaunchOutcome(run=None, state=State.REFUSED, reason=_reasons(prepared))
    return LaunchOutcome(run=None, state=State.PLANNED, reason="dry run: nothing was started")


def _refuse(context: FlowContext, run: Run, prepared: Prepared) -> LaunchOutcome:
    run.update(state=State.REFUSED, reason=_reasons(prepared), ended=context.clock.now().timestamp())
    return LaunchOutcome(run=run, state=State.REFUSED, reason=_reasons(prepared))


def passed_before(store: RunStore, plan: LaunchPlan) -> bool:
    """Return whether a run with exactly these arguments has been ready on that host with that engine before."""
    same = {"digest": plan.digest, "host": plan.host, "engine": plan.engine}
    return any("ready" in info and same.items() <= info.items() for info in (run.info for run in store.all()))


def with_dry_run(prepared: Prepared, dry: DryRun, today: date) -> Prepared:
    """Add the engine's findings to the preparation, except causes that a check has already reported."""
    known = {finding.id for finding in prepared.findings}
    added, accepted = settle([item for item in dry.findings if item.id not in known], prepared.profile.accept, today)
    return replace(
        prepared,
        findings=(*prepared.findings, *added),
        accepted=(*prepared.accepted, *accepted),
        effective=dry.effective,
    )


def follow_run(context: FlowContext, watching: Watching, request: ValidationRequest, *, probe: bool) -> LaunchOutcome:
    """Follow a started process to its verdict, for `launch` and `attach`. Without `probe`, stop at a ready server."""
    run = watching.run
    try:
        ending = watching.until_ready(request.expect.ready_within)
        if ending.state is not State.READY:
            return _finish(context, watching, ending)
        if run.state is not State.VALIDATED:  # `attach` to a validated run keeps that state
            run.update(state=State.READY, ready=context.clock.now().timestamp())
        run.write("server_info", without_secrets(watching.info))
        for finding in differences(run.plan.flags, watching.info):
            context.observer.say(f"{finding.severity}: {finding.message}")
        if not probe:
            return LaunchOutcome(run=run, state=State.READY, reason="ready, not validated")
        return _validate(context, watching, request)
    finally:
        watching.close()


def _validate(context: FlowContext, watching: Watching, request: ValidationRequest) -> LaunchOutcome:
    """Probe in a thread while this one keeps watching the run: the engine may die on the first real request."""
    run = watching.run
    with ThreadPoolExecutor(1, "validate") as pool:
        job = pool.submit(prove, _subject(watching), request, context.clock, context.observer.verdict)
        try:
            while not job.done() and watching.ended is None:
                watching.pump(0.1)
        except BaseException:  # Ctrl-C: the pool would wait for probes that wait for answers
            watching.endpoint.close()
            raise
        if watching.ended is not None and not job.done():
            watching.endpoint.close()
        validation = job.result()
    watching.pump(0)
    run.write("validation", as_dict(validation))
    if watching.ended is not None:
        return _finish(context, watching, watching.gone(watching.ended, " during validation"), validation)
    run.update(state=State.VALIDATED, outcome=validation.outcome, level=validation.level)
    return LaunchOutcome(run=run, state=State.VALIDATED, reason=validation.summary, validation=validation)


def _subject(watching: Watching) -> Subject:
    run = watching.run
    return Subject(
        endpoint=watching.endpoint,
        transport=watching.transport,
        host=run.plan.probe_host,
        port=run.plan.server_port,
        info=watching.info,
        ledger=diagnose_run(run).ledger,
        read_log=lambda: log_view(run),
        folder=run.folder,
        gone=lambda: watching.ended is not None,
    )


def _finish(
    context: FlowContext, watching: Watching, ending: Ending, validation: Validation | None = None
) -> LaunchOutcome:
    """Store and diagnose the end of a run that did not become or stay ready."""
    run = watching.run
    end = watching.ended
    run.update(
        state=ending.state, reason=ending.reason, ended=context.clock.now().timestamp(), exit=end.code if end else None
    )
    diagnosis = diagnose_run(run)
    return LaunchOutcome(run=run, state=ending.state, reason=ending.reason, diagnosis=diagnosis, validation=validation)


def _record(context: FlowContext, prepared: Prepared) -> Run:
    """Write the Run to disk, before anything is started."""
    run = context.store.create(prepared.profile.name, context.clock.now())
    plan = prepared.plan
    run.update(
        state=State.PLANNED,
        profile=prepared.profile.name,
        digest=plan.digest,
        host=plan.host,
        engine=plan.engine,
        created=context.clock.now().timestamp(),
    )
    run.write("plan", plan.to_json())
    run.write("profile", profile_json(prepared.profile))
    run.write("facts", prepared.facts)
    run.write("launch", to_builtins(prepared.launch))
    run.write("findings", [asdict_finding(item) for item in prepared.findings])
    if prepared.effective:
        run.write("effective", prepared.effective)
    run.write_text("launch.sh", launch_script(plan, run.id))
    return run


def _start(context: FlowContext, prepared: Prepared, run: Run, secrets: Mapping[str, str]) -> None:
    run.update(state=State.STARTING, started=context.clock.now().timestamp())
    try:
        identity = remote.start(context.transport, run, secrets, systemd=prepared.systemd)
    except PlanRefused as error:
        run.update(state=State.REFUSED, reason=error.message)
        raise
    except LauncherError as error:
        run.update(state=State.LOST, reason=error.message)
        raise
    run.update(state=State.LOADING, **identity)
    event = Started(at=0.0, pid=identity["pid"])
    run.append_event({"event": "Started", **to_builtins(event)})
    context.observer.event(event)


def _reasons(prepared: Prepared) -> str:
    return "; ".join(finding.message for finding in prepared.errors)


def profile_json(profile: Profile) -> dict[str, Any]:
    """Return a resolved profile as JSON data, with the origin of each value and without secrets."""
    return {
        "name": profile.name,
        "path": profile.path,
        "why": profile.why,
        "engine": profile.engine.text,
        "digest": profile.digest,
        "model": {name: _setting_json(item) for name, item in profile.model.items()},
        "hardware": {name: _setting_json(item) for name, item in profile.hardware.items()},
        "flags": {name: _setting_json(item) for name, item in profile.flags.items()},
        "env": {name: _setting_json(item) for name, item in profile.env.items()},
        "expect": profile.written_expectations,
        "accept": [{**asdict(item), "until": str(item.until) if item.until else None} for item in profile.accept],
    }


def _setting_json(item: Setting | EnvSetting) -> dict[str, Any]:
    return {**asdict(item), "engine": item.engine.text}


def asdict_finding(item: Any) -> dict[str, Any]:
    """Return a finding as JSON data."""
    return {
        "id": item.id,
        "severity": item.severity,
        "message": item.message,
        "subject": item.subject,
        "origin": item.origin,
        "why": item.why,
        "remedies": to_builtins(item.remedies),
    }
