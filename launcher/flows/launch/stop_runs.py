"""Stop runs and prove that nothing of them is left."""

from __future__ import annotations

from launcher.errors import LauncherError
from launcher.flows.launch.launch import Desk
from launcher.plan.launch_plan import LaunchPlan
from launcher.run import remote
from launcher.run.frames import Ended, FrameReader, LogBytes
from launcher.run.log_copy import LogCopy
from launcher.run.store import Run, State
from launcher.secrets import Masker


def stop(desk: Desk, run: Run, *, drain: float = remote.DRAIN_SECONDS) -> remote.Stopped:
    """SIGTERM, drain, then harder; afterwards the rest of the log is fetched and the state written."""
    plan = run.plan
    result = remote.stop(desk.transport, plan, run.id, drain=drain, say=desk.observer.say)
    fetch_rest(desk, run, plan)
    if run.state not in (State.CRASHED, State.REFUSED):
        run.update(state=State.STOPPED, exit=result.code, ended=desk.clock.now().timestamp())
    return result


def stop_foreign(desk: Desk, run_id: str, work_dir: str, *, drain: float = remote.DRAIN_SECONDS) -> remote.Stopped:
    """Stop a run that was started from another machine: only its folder on the host is known."""
    plan = LaunchPlan(
        profile="", digest="", host=desk.transport.name, engine="", python="python3", work_dir=work_dir,
        flags={}, env={}, server_port=0,
    )  # fmt: skip
    return remote.stop(desk.transport, plan, run_id, drain=drain, say=desk.observer.say)


def fetch_rest(desk: Desk, run: Run, plan: LaunchPlan) -> None:
    """Copy what the log got since we last looked. The run must have ended, or this would follow it for ever."""
    copy, frames = LogCopy(run, Masker()), FrameReader()
    stream = desk.transport.stream(remote.follow_command(plan, run.id, copy.offset))
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
