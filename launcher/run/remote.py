"""The processes of a run on its host: starts them, looks at them, stops all of them.

It sends the programs of `hostside` and turns their answers into records; `log_copy` reads the output of the engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from launcher import hostside
from launcher.errors import HostCommandFailed, PlanRefused
from launcher.plan.launch_plan import DEFAULT_HOST, LaunchPlan
from launcher.plan.launch_script import launch_script, lock_path, run_folder, secret_files
from launcher.run import run_wording
from launcher.run.store import Run
from launcher.transport.answers import ask, failed
from launcher.transport.base import Command, Transport

DRAIN_SECONDS = 90.0  # after SIGTERM an unhealthy 0.5.23 takes 71 s to exit (py-spy, core dump wait)


class Look(Struct, frozen=True, kw_only=True):
    """The state of a run on its host: `state` is running, exited, vanished or not-started."""

    run: str
    state: str
    code: int | None
    pid: int | None
    log_bytes: int
    listening: bool | None = None  # whether a process of the run listens on the server's port; None when not checked
    foreign_listeners: tuple[int, ...] = ()  # pids of other processes that listen on it


class Stopped(Struct, frozen=True, kw_only=True):
    """The result of a stop, and whatever is left of the run."""

    state: str
    code: int | None
    forced: str  # the strongest measure that was needed: "", "group" (SIGTERM to all processes) or "kill"
    survivors: tuple[Mapping[str, Any], ...]
    port_free: bool
    gpu_pids: tuple[int, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing of the run is left."""
        return not self.survivors and self.port_free and not self.gpu_pids


def host_facts(transport: Transport, arguments: Mapping[str, Any], python: str = "") -> dict[str, Any]:
    """Return raw facts about the host. Raises HostCommandFailed, HostUnreachable, TransportTimeout."""
    return dict(ask(transport, hostside.command("host_facts", arguments, python=python, timeout=120)))


def start(transport: Transport, run: Run, secrets: Mapping[str, str], *, systemd: bool) -> dict[str, Any]:
    """Upload the files of a run and start it; return pid, start time and boot id of the engine's process.

    Raises PlanRefused when the port or its lock is taken, or launch.sh did not start.
    """
    plan = run.plan
    files = {"launch.sh": [launch_script(plan, run.id), 0o700]}
    files |= {name: [text, 0o600] for name, text in secret_files(plan, secrets).items()}
    arguments = {
        "folder": run_folder(plan, run.id),
        "run": run.id,
        "host": plan.server_host,
        "port": plan.server_port,
        "lock": lock_path(plan),
        "files": files,
        "systemd": systemd,
    }
    answer = ask(transport, hostside.command("start", arguments, python=plan.python))
    if "started" in answer:
        return dict(answer["started"])
    raise _refusal(answer, plan)


def look(transport: Transport, run: Run) -> Look:
    """Return the state of a run on its host."""
    plan = run.plan
    arguments = {"work_dir": plan.work_dir, "runs": [run.id], "port": plan.server_port}
    return _looks(transport, arguments, plan.python)[0]


def look_at_all(transport: Transport, work_dir: str) -> list[Look]:
    """Return the state of every run on a host, whichever machine started it."""
    return _looks(transport, {"work_dir": work_dir, "runs": [], "port": None}, "")


def follow_command(run: Run, offset: int) -> Command:
    """Return the command whose output `frames` parses; `offset` is the first byte of the log to send."""
    arguments = {"folder": run_folder(run.plan, run.id), "run": run.id, "offset": offset}
    return hostside.command("follow", arguments, python=run.plan.python, timeout=30)


def stop(
    transport: Transport, run: Run, *, drain: float = DRAIN_SECONDS, say: Callable[[str], None] | None = None
) -> Stopped:
    """Stop a run and report what is left. `drain` is in seconds; `say` receives a sentence for each step."""
    plan = run.plan
    arguments = {
        "folder": run_folder(plan, run.id),
        "run": run.id,
        "host": plan.server_host,
        "port": plan.server_port,
        "drain": drain,
    }
    return _stopped(transport, hostside.command("stop_tree", arguments, python=plan.python, timeout=drain + 60), say)


def stop_foreign(
    transport: Transport,
    run_id: str,
    work_dir: str,
    *,
    drain: float = DRAIN_SECONDS,
    say: Callable[[str], None] | None = None,
) -> Stopped:
    """Stop a run that was started from another machine, of which only the folder on the host is known."""
    arguments = {
        "folder": f"{work_dir}/runs/{run_id}",
        "run": run_id,
        "host": DEFAULT_HOST,
        "port": 0,
        "drain": drain,
    }
    return _stopped(transport, hostside.command("stop_tree", arguments, timeout=drain + 60), say)


def _looks(transport: Transport, arguments: Mapping[str, Any], python: str) -> list[Look]:
    rows = ask(transport, hostside.command("look", arguments, python=python))
    return [Look(**{**row, "foreign_listeners": tuple(row.get("foreign_listeners", ()))}) for row in rows]


def _stopped(transport: Transport, command: Command, say: Callable[[str], None] | None) -> Stopped:
    last: dict[str, Any] = {}
    for row in _lines(transport, command):
        if say is not None and "step" in row:
            say(run_wording.stop_step(row))
        last = row
    if "state" not in last:
        raise HostCommandFailed("the host did not report the result of the stop", where=transport.name)
    return Stopped(
        state=last["state"],
        code=last["code"],
        forced=last["forced"],
        survivors=tuple(last["survivors"]),
        port_free=last["port_free"],
        gpu_pids=tuple(last["gpu_pids"]),
    )


def holders_text(holders: Iterable[Mapping[str, Any]]) -> str:
    """Describe the processes that hold a port: runs by their id, others by pid and command."""
    descriptions = [
        f"run {item['run']} (pid {item['pid']}; `launch stop {item['run']}`)"
        if item.get("run")
        else f"pid {item['pid']} ({item['command'][:80]})"
        for item in holders
    ]
    return ", ".join(descriptions) or "a process that this user cannot see"


def _lines(transport: Transport, command: Command) -> Iterator[dict[str, Any]]:
    pending = b""
    stream = transport.stream(command)
    for chunk in stream:
        *lines, pending = (pending + chunk).split(b"\n")
        yield from (json.loads(line) for line in lines if line.startswith(b"{"))
    result = stream.result()
    if result.exit != 0:
        raise failed(transport, command, result.exit, result.stderr)


def _refusal(answer: Mapping[str, Any], plan: LaunchPlan) -> PlanRefused:
    where = f"{plan.host}:{plan.server_port}"
    holders = holders_text(answer.get("holders", []))
    match answer.get("refused"):
        case "port-locked":
            run = answer.get("run") or "?"
            return PlanRefused(
                f"run {run} already uses port {plan.server_port} on {plan.host}",
                where=where,
                hint=f"`launch stop {run}`",
            )
        case "port-in-use":
            return PlanRefused(
                f"port {plan.server_port} on {plan.host} is taken by {holders}",
                where=where,
                hint="end that process, or choose another port: `--set port=…`",
            )
        case "did-not-start":
            return PlanRefused(
                f"launch.sh did not start: {answer.get('detail', '').strip() or 'no error message'}", where=where
            )
        case reason:
            return PlanRefused(f"the host refused the start: {reason}", where=where)
