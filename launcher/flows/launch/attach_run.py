"""Follow a run again, after a lost connection, a closed laptop or a killed launcher, from its state now to its end."""

from __future__ import annotations

from launcher.flows.launch.flow_context import FlowContext
from launcher.flows.launch.launch import LaunchOutcome, follow_run
from launcher.flows.launch.watching import Watching
from launcher.flows.validate.request import request_from
from launcher.run import remote
from launcher.run.state import State
from launcher.run.store import Run
from launcher.secrets import Masker


def attach(context: FlowContext, run: Run, *, probe: bool) -> LaunchOutcome:
    """Follow a run until it is ready, validated or gone. The local copy of the log is continued, not fetched again."""
    path = str((run.read("profile") or {}).get("path", ""))
    request = request_from(run.expectations, context.store, path)
    return follow_run(context, Watching(run, context, Masker()), request, probe=probe)


def refresh(context: FlowContext, run: Run) -> remote.Look:
    """Look at a run on its host again, and correct the stored state if it is out of date."""
    look = remote.look(context.transport, run)
    alive = {State.STARTING, State.LOADING, State.READY, State.VALIDATED, State.STALLED, State.TIMED_OUT}
    if run.state in alive and look.state != "running":
        state = State.LOST if look.state != "exited" else State.STOPPED if look.code == 0 else State.CRASHED
        run.update(state=state, exit=look.code, ended=context.clock.now().timestamp())
    return look
