"""What ran on a host before a trial: which runs, how they are stopped, and started again as they were.

A run that was started from elsewhere cannot be started again from here, so it is left alone and the trial refused.
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
from launcher.run.store import Run, State
from launcher.secrets import Masker, fetch
from launcher.transport.inventory import Host


@contextmanager
def set_aside(context: FlowContext, host: Host, lost: list[str]) -> Iterator[None]:
    """Nothing of ours runs on the host while the block runs; afterwards everything runs again, whatever happened.

    What could not be started again is added to `lost`. Raises LauncherError, with nothing stopped, for a run that could
    not be started again from here, or whose secrets are not set here.
    """
    before, stopped = running(context, host), list[tuple[Run, Mapping[str, str]]]()
    try:
        for run, secrets in before:
            context.observer.say(f"stopping {run.id}; it will be started again")
            stopped.append((run, secrets))
            stop(context, run)
        yield
    finally:
        lost += [text for run, secrets in stopped if (text := restore(context, run, secrets))]


def running(context: FlowContext, host: Host) -> list[tuple[Run, dict[str, str]]]:
    """Our runs on the host, with the secrets they need to be started again. Raises LauncherError before any stop."""
    found = []
    for seen in remote.look_at_all(context.transport, host.work_dir):
        if seen.state != "running":
            continue
        try:
            run = context.store.find(seen.run)
        except RunNotFound as error:
            raise LauncherError(
                f"{seen.run} runs there and was started from elsewhere: it could not be started again from here",
                where=host.name,
                hint=f"`launch stop {seen.run} --host {host.name}`, if it may go",
            ) from error
        found.append((run, fetch(run.plan.secret_env)))
    return found


def restore(context: FlowContext, old: Run, secrets: Mapping[str, str]) -> str:
    """Start a stopped run again, as a new one with the same plan. What went wrong, empty when nothing did."""
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
        return f"{old.id} was not started again: {error.message}"
    run.update(state=ending.state, reason=ending.reason)
    if ending.state is not State.READY:
        return f"{old.id} was started again as {run.id} and is {ending.state}: {ending.reason}"
    run.update(ready=context.clock.now().timestamp())
    context.observer.say(f"{old.id} runs again, as {run.id}")
    return ""
