"""Stop runs and prove that none of their processes is left."""

from __future__ import annotations

from contextlib import closing, suppress

from launcher.errors import LauncherError
from launcher.flows.launch.flow_context import FlowContext
from launcher.run import remote
from launcher.run.frames import Ended, FrameReader, LogBytes
from launcher.run.log_copy import LogCopy
from launcher.run.state import State
from launcher.run.store import Run
from launcher.secrets import Masker


def stop(context: FlowContext, run: Run, *, drain: float = remote.DRAIN_SECONDS) -> remote.Stopped:
    """Stop a run: SIGTERM, `drain` seconds to finish its requests, then harder signals.

    Afterwards, copy the rest of its log and store its state.
    """
    result = remote.stop(context.transport, run, drain=drain, say=context.observer.say)
    fetch_rest(context, run)
    if run.state not in (State.CRASHED, State.REFUSED):
        run.update(state=State.STOPPED, exit=result.code, ended=context.clock.now().timestamp())
    return result


def stop_foreign(context: FlowContext, run_id: str, work_dir: str, *, drain: float) -> remote.Stopped:
    """Stop a run that was started from another machine: only its folder on the host is known."""
    return remote.stop_foreign(context.transport, run_id, work_dir, drain=drain, say=context.observer.say)


def fetch_rest(context: FlowContext, run: Run) -> None:
    """Copy the log from the end of the local copy, as far as the connection allows.

    The run must have ended: a running one is followed forever.
    """
    copy, frames = LogCopy(run, Masker()), FrameReader()
    with suppress(LauncherError), closing(context.transport.stream(remote.follow_command(run, copy.offset))) as stream:
        for chunk in stream:
            for frame in frames.feed(chunk):
                if isinstance(frame, LogBytes):
                    copy.feed(frame)
                elif isinstance(frame, Ended):
                    copy.finish()
                    return
