"""Launch a profile: resolve → look → check → start → watch → prove ready → probe → verdict. The spine of the product.

Straight-line code over Transport, Clock and RunStore. Nothing is printed here: an Observer is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any, Protocol

from msgspec import Struct, to_builtins
from msgspec.structs import asdict, replace

from checks.after.validation import Validation, as_dict
from checks.vocabulary import Diagnosis, Outcome, Verdict
from launcher.clock import Clock
from launcher.errors import LauncherError, PlanRefused
from launcher.flows.diagnose.run_diagnosis import diagnose_run, log_view
from launcher.flows.launch.engine_dry_run import DryRun, differences, dry_run
from launcher.flows.launch.prepare import Prepared, prepare, settle
from launcher.flows.launch.watching import Ending, Watching
from launcher.flows.validate.prove import Subject, Wishes, prove, wishes_of
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.launch_script import launch_script
from launcher.profile.file import EnvSetting, Profile, Setting
from launcher.run import remote
from launcher.run.events import Event, Started
from launcher.run.store import Run, RunStore, State
from launcher.secrets import Masker, fetch, without_secrets
from launcher.transport.base import Transport
from launcher.transport.inventory import Host

READY_WITHIN = 3600.0  # seconds; a profile's `expect: ready-within` says better
WATCHED = (State.READY, State.VALIDATED)


class Options(Struct, frozen=True, kw_only=True):
    """What the command line may change about a launch."""

    dry_run: bool = False
    detach: bool = False  # return as soon as the process runs
    validate: bool = True
    ignore_findings: bool = False  # start although an error finding says it will not work
    soak: float = 0.0  # seconds to go on probing once it is validated; 0: what the profile says
    ask_engine: bool = True  # let the engine resolve its arguments on the host first, when it has not done so before


class LaunchOutcome(Struct, frozen=True, kw_only=True):
    """How a launch ended."""

    run: Run | None
    state: State
    reason: str
    diagnosis: Diagnosis | None = None
    validation: Validation | None = None

    @property
    def healthy(self) -> bool:
        """Ready, and every probe that was asked for passed."""
        return self.state in WATCHED and (self.validation is None or self.validation.outcome is Outcome.PASS)


class Observer(Protocol):
    """Who is told what happens, as it happens."""

    def prepared(self, prepared: Prepared, run: Run | None) -> None:
        """The plan is made and judged."""

    def event(self, event: Event) -> None:
        """Something happened to the run."""

    def verdict(self, verdict: Verdict) -> None:
        """A probe was judged."""

    def say(self, text: str) -> None:
        """One line about what is going on."""


class Desk(Struct, frozen=True, kw_only=True):
    """What a flow works with."""

    transport: Transport
    store: RunStore
    clock: Clock
    observer: Observer


def launch(desk: Desk, profile: Profile, host: Host, options: Options) -> LaunchOutcome:
    """The whole launch. Raises LauncherError for what is not the run's own end (host unreachable, port taken…)."""
    wanted = wishes_of(profile.expectations, desk.store, profile.path)
    prepared = prepare(desk.transport, profile, host, desk.clock.now())
    if options.ask_engine and not prepared.errors and not passed_before(desk.store, prepared.plan):
        desk.observer.say("asking the engine itself whether it takes these arguments (as long as importing it takes)")
        prepared = with_dry_run(prepared, dry_run(desk.transport, prepared), desk.clock.now().date())
    if options.dry_run:
        desk.observer.prepared(prepared, None)
        if prepared.errors:
            return LaunchOutcome(run=None, state=State.REFUSED, reason=_refused(prepared))
        return LaunchOutcome(run=None, state=State.PLANNED, reason="nothing was started: --dry-run")
    secrets = fetch(prepared.plan.secret_env)
    run = _record(desk, prepared)
    desk.observer.prepared(prepared, run)
    if prepared.errors and not options.ignore_findings:
        run.update(state=State.REFUSED, reason=_refused(prepared), ended=desk.clock.now().timestamp())
        return LaunchOutcome(run=run, state=State.REFUSED, reason=_refused(prepared))
    masker = Masker(secrets.values())
    _start(desk, prepared, run, secrets)
    if options.detach:
        return LaunchOutcome(run=run, state=State.STARTING, reason="started; `launch attach` follows it")
    watching = Watching(run, prepared.plan, desk.transport, desk.clock, masker, desk.observer.event)
    wanted = replace(wanted, soak=options.soak or wanted.soak)
    return see_through(desk, watching, expect=profile.expectations, wanted=wanted if options.validate else None)


def passed_before(store: RunStore, plan: LaunchPlan) -> bool:
    """Whether a run with exactly these arguments, on that host and engine, got ready before: no need to ask again."""
    same = {"digest": plan.digest, "host": plan.host, "engine": plan.engine}
    return any("ready" in info and same.items() <= info.items() for info in (run.info for run in store.all()))


def with_dry_run(prepared: Prepared, dry: DryRun, today: date) -> Prepared:
    """The preparation with what the engine itself said; a cause that a check had named is not named twice."""
    known = {finding.id for finding in prepared.findings}
    fresh, accepted = settle([item for item in dry.findings if item.id not in known], prepared.profile.accept, today)
    return replace(
        prepared,
        findings=(*prepared.findings, *fresh),
        accepted=(*prepared.accepted, *accepted),
        effective=dry.effective,
    )


def see_through(desk: Desk, watching: Watching, *, expect: Mapping[str, Any], wanted: Wishes | None) -> LaunchOutcome:
    """From a running process to a verdict; also what `attach` does. Without `wanted` nothing is probed."""
    try:
        ending = watching.until_ready(float(expect.get("ready-within", READY_WITHIN)))
        if ending.state is not State.READY:
            return _finish(desk, watching, ending)
        if watching.run.state is not State.VALIDATED:  # somebody only looks in again
            watching.run.update(state=State.READY, ready=desk.clock.now().timestamp())
        watching.run.write("server_info", without_secrets(watching.info))
        for finding in differences(watching.plan.flags, watching.info):
            desk.observer.say(f"{finding.severity}: {finding.message}")
        if wanted is None:
            return LaunchOutcome(run=watching.run, state=State.READY, reason="ready; not validated")
        return _validate(desk, watching, wanted)
    finally:
        watching.close()


def _validate(desk: Desk, watching: Watching, wanted: Wishes) -> LaunchOutcome:
    """Probe in a thread while the run stays under observation: it may die under the first real request."""
    run, plan = watching.run, watching.plan
    subject = Subject(
        endpoint=watching.endpoint,
        transport=watching.transport,
        host=plan.probe_host,
        port=plan.server_port,
        info=watching.info,
        ledger=diagnose_run(run).ledger,
        read_log=lambda: log_view(run),
        folder=run.folder,
        gone=lambda: watching.ended is not None,
    )
    with ThreadPoolExecutor(1, "validate") as pool:
        job = pool.submit(prove, subject, wanted, desk.clock, desk.observer.verdict)
        try:
            while not job.done() and watching.ended is None:
                watching.pump(0.1)
        except BaseException:  # Ctrl-C: the pool waits for the probes, which wait for answers
            watching.endpoint.close()
            raise
        if watching.ended is not None and not job.done():
            watching.endpoint.close()
        validation = job.result()
    watching.pump(0)
    watching.run.write("validation", as_dict(validation))
    if watching.ended is not None:
        return _finish(desk, watching, watching.gone(watching.ended, " while it was being probed"), validation)
    watching.run.update(state=State.VALIDATED, outcome=validation.outcome, level=validation.level)
    return LaunchOutcome(run=watching.run, state=State.VALIDATED, reason=validation.summary, validation=validation)


def _finish(desk: Desk, watching: Watching, ending: Ending, validation: Validation | None = None) -> LaunchOutcome:
    """The run did not get, or stay, ready: say why."""
    run = watching.run
    end = watching.ended
    run.update(
        state=ending.state, reason=ending.reason, ended=desk.clock.now().timestamp(), exit=end.code if end else None
    )
    diagnosis = diagnose_run(run)
    return LaunchOutcome(run=run, state=ending.state, reason=ending.reason, diagnosis=diagnosis, validation=validation)


def _record(desk: Desk, prepared: Prepared) -> Run:
    """The Run on disk, before anything is started."""
    run = desk.store.create(prepared.profile.name, desk.clock.now())
    plan = prepared.plan
    run.update(
        state=State.PLANNED,
        profile=prepared.profile.name,
        digest=plan.digest,
        host=plan.host,
        engine=plan.engine,
        created=desk.clock.now().timestamp(),
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


def _start(desk: Desk, prepared: Prepared, run: Run, secrets: Mapping[str, str]) -> None:
    run.update(state=State.STARTING, started=desk.clock.now().timestamp())
    try:
        identity = remote.start(desk.transport, prepared.plan, run.id, secrets, systemd=prepared.systemd)
    except PlanRefused as error:
        run.update(state=State.REFUSED, reason=error.message)
        raise
    except LauncherError as error:
        run.update(state=State.LOST, reason=error.message)
        raise
    run.update(state=State.LOADING, **identity)
    event = Started(at=0.0, pid=identity["pid"])
    run.append_event({"event": "Started", **to_builtins(event)})
    desk.observer.event(event)


def _refused(prepared: Prepared) -> str:
    return "; ".join(finding.message for finding in prepared.errors)


def profile_json(profile: Profile) -> dict[str, Any]:
    """A resolved profile with the place of each value; secrets are not in it."""
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
        "expect": profile.expectations,
        "accept": [{**asdict(item), "until": str(item.until) if item.until else None} for item in profile.accept],
    }


def _setting_json(item: Setting | EnvSetting) -> dict[str, Any]:
    return {**asdict(item), "engine": item.engine.text}


def asdict_finding(item: Any) -> dict[str, Any]:
    """A finding as JSON values."""
    return {
        "id": item.id,
        "severity": item.severity,
        "message": item.message,
        "subject": item.subject,
        "origin": item.origin,
    }
