"""Stop the runs on a host before a trial, and restart them afterwards with the same plan.

A run that was started from another machine cannot be restarted from this one: it keeps running, and the trial is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from launcher.errors import LauncherError, RunNotFound
from launcher.flows.launch.flow_context import FlowContext
from launcher.flows.launch.stop_runs import stop
from launcher.flows.launch.watching import Watching
from launcher.plan.launch_script import launch_script
from launcher.run import remote
from launcher.run.state import State
from launcher.run.store import Run
from launcher.secrets import Masker, fetch
from launcher.transport.inventory import Host


@contextmanager
def set_aside(context: FlowContext, host: Host, not_restored: list[str]) -> Iterator[None]:
    """Stop our runs on the host while the block runs, and restart them afterwards, whatever happens.

    A message for each run that could not be restarted is added to `not_restored`. Raises LauncherError, before any run
    is stopped, for a run that cannot be restarted from this machine or whose secrets are not set here.
    """
    runs, stopped = running(context, host), list[tuple[Run, Mapping[str, str]]]()
    try:
        for run, secrets in runs:
            context.observer.say(f"stopping run {run.id}; it will be restarted after the trial")
            stopped.append((run, secrets))
            stop(context, run)
        yield
    finally:
        not_restored += [text for run, secrets in stopped if (text := restore(context, run, secrets))]


def running(context: FlowContext, host: Host) -> list[tuple[Run, dict[str, str]]]:
    """Return our runs on the host, with the secrets needed to restart them. Stops nothing.

    Raises LauncherError for a run that was started from another machine, and UsageError for a secret that is not set.
    """
    runs = []
    for look in remote.look_at_all(context.transport, host.work_dir):
        if look.state != "running":
            continue
        try:
            run = context.store.find(look.run)
        except RunNotFound as error:
            raise LauncherError(
                f"run {look.run} was started from another machine and cannot be restarted from this one",
                where=host.name,
                hint=f"if the run is not needed: `launch stop {look.run} --host {host.name}`",
            ) from error
        runs.append((run, fetch(run.plan.secret_env)))
    return runs


def restore(context: FlowContext, old: Run, secrets: Mapping[str, str]) -> str:
    """Restart a stopped run as a new run with the same plan. Returns what went wrong; empty on success."""
    plan = old.plan
    run = context.store.create(plan.profile or "restored", context.clock.now())
    for name in ("plan", "profile", "facts", "launch", "findings", "effective"):
        if (data := old.read(name)) is not None:
            run.write(name, data)
    info = {key: value for key, value in old.info.items() if key in ("profile", "digest", "host", "engine")}
    now = context.clock.now().timestamp()
    run.update(state=State.STARTING, created=now, started=now, restored_from=old.id, **info)
    run.write_text("launch.sh", launch_script(plan, run.id))
    detach = (old.read("facts") or {}).get("detach") or {}
    systemd = bool(detach.get("kill_user_processes") and detach.get("linger"))
    try:
        identity = remote.start(context.transport, run, secrets, systemd=systemd)
        run.update(state=State.LOADING, **identity)
        watching = Watching(run, context, Masker(secrets.values()))
        try:
            ending = watching.until_ready(old.expectations.ready_within)
        finally:
            watching.close()
    except LauncherError as error:
        run.update(state=State.LOST, reason=error.message)
        return f"run {old.id} was not restarted: {error.message}"
    run.update(state=ending.state, reason=ending.reason)
    if ending.state is not State.READY:
        return f"run {old.id} was restarted as {run.id}, which is {ending.state}: {ending.reason}"
    run.update(ready=context.clock.now().timestamp())
    context.observer.say(f"run {old.id} was restarted as {run.id}")
    return ""
