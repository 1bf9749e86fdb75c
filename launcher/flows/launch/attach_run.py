"""Come back to a run: after a lost link, a closed laptop, a killed launcher. From wherever it stands to its end."""

from __future__ import annotations

from launcher.flows.launch.flow_context import FlowContext
from launcher.flows.launch.launch import LaunchOutcome, see_through
from launcher.flows.launch.watching import Watching
from launcher.flows.validate.request import request_from
from launcher.run import remote
from launcher.run.store import Run, State
from launcher.secrets import Masker


def attach(context: FlowContext, run: Run, *, probe: bool) -> LaunchOutcome:
    """Follow a run until it is ready, validated or gone. The log continues where our copy ends."""
    path = str((run.read("profile") or {}).get("path", ""))
    request = request_from(run.expectations, context.store, path)
    return see_through(context, Watching(run, context, Masker()), request, probe=probe)


def refresh(context: FlowContext, run: Run) -> remote.Look:
    """A second look at a run on its host; the stored state is corrected when it is out of date."""
    seen = remote.look(context.transport, run)
    alive = {State.STARTING, State.LOADING, State.READY, State.VALIDATED, State.STALLED, State.TIMED_OUT}
    if run.state in alive and seen.state != "running":
        state = State.LOST if seen.state != "exited" else State.STOPPED if seen.code == 0 else State.CRASHED
        run.update(state=state, exit=seen.code, ended=context.clock.now().timestamp())
    return seen
