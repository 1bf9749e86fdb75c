"""Come back to a run: after a lost link, a closed laptop, a killed launcher. From wherever it stands to its end."""

from __future__ import annotations

from launcher.flows.launch.launch import Desk, LaunchOutcome, see_through
from launcher.flows.launch.watching import Watching
from launcher.flows.validate.prove import wishes_of
from launcher.run import remote
from launcher.run.store import Run, State
from launcher.secrets import Masker


def attach(desk: Desk, run: Run, *, probes: bool) -> LaunchOutcome:
    """Follow a run until it is ready, validated or gone. The log continues where our copy ends."""
    plan = run.plan
    profile = run.read("profile") or {}
    watching = Watching(run, plan, desk.transport, desk.clock, Masker(), desk.observer.event)
    expect = profile.get("expect", {})
    wanted = wishes_of(expect, desk.store, str(profile.get("path", ""))) if probes else None
    return see_through(desk, watching, expect=expect, wanted=wanted)


def refresh(desk: Desk, run: Run) -> remote.Look:
    """A second look at a run on its host; the stored state is corrected when it is out of date."""
    plan = run.plan
    seen = remote.look(desk.transport, plan.work_dir, [run.id], port=plan.server_port, python=plan.python)[0]
    alive = {State.STARTING, State.LOADING, State.READY, State.VALIDATED, State.STALLED, State.TIMED_OUT}
    if run.state in alive and seen.state != "running":
        state = State.LOST if seen.state != "exited" else State.STOPPED if seen.code == 0 else State.CRASHED
        run.update(state=state, exit=seen.code, ended=desk.clock.now().timestamp())
    return seen
