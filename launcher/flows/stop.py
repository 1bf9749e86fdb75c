"""Stop runs and prove that nothing of them is left."""

from __future__ import annotations

from launcher import server
from launcher.errors import LauncherError
from launcher.flows.launch import Desk, plan_of
from launcher.flows.tail import LogCopy
from launcher.logtail import Ended, FrameReader, LogBytes
from launcher.plan import LaunchPlan
from launcher.runs import Run, State
from launcher.secrets import Masker


def stop(desk: Desk, run: Run, *, drain: float = server.DRAIN_SECONDS) -> server.Stopped:
    """SIGTERM, drain, then harder; afterwards the rest of the log is fetched and the state written."""
    plan = plan_of(run)
    result = server.stop(desk.transport, plan, run.id, drain=drain, say=desk.observer.say)
    fetch_rest(desk, run, plan)
    if run.state not in (State.CRASHED, State.REFUSED):
        run.update(state=State.STOPPED, exit=result.code, ended=desk.clock.now().timestamp())
    return result


def stop_foreign(desk: Desk, run_id: str, work_dir: str, *, drain: float = server.DRAIN_SECONDS) -> server.Stopped:
    """Stop a run that was started from another machine: only its folder on the host is known."""
    plan = LaunchPlan(
        profile="", digest="", host=desk.transport.name, engine="", python="python3", work_dir=work_dir,
        flags={}, env={}, server_port=0,
    )  # fmt: skip
    return server.stop(desk.transport, plan, run_id, drain=drain, say=desk.observer.say)


def fetch_rest(desk: Desk, run: Run, plan: LaunchPlan) -> None:
    """Copy what the log got since we last looked. The run must have ended, or this would follow it for ever."""
    copy, frames = LogCopy(run, Masker()), FrameReader()
    stream = desk.transport.stream(server.follow_command(plan, run.id, copy.offset))
    try:
        for chunk in stream:
            for frame in frames.feed(chunk):
                if isinstance(frame, LogBytes):
                    copy.feed(frame)
                elif isinstance(frame, Ended):
                    copy.finish()
                    return
    except LauncherError:
        return
    finally:
        stream.close()
