"""The remote process of a run: start it, look again, stop the whole tree. What it prints is `logtail`'s business."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from launcher import hostside
from launcher.errors import HostCommandFailed, PlanRefused
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.launch_script import launch_script, lock_path, run_folder, secret_files
from launcher.transport.answers import ask, failed
from launcher.transport.base import Command, Transport

DRAIN_SECONDS = 90.0  # an unhealthy 0.5.23 needs 71 s for a SIGTERM (py-spy, core dump wait)


class Look(Struct, frozen=True, kw_only=True):
    """A run seen from the host: `state` is running, exited, vanished or not-started."""

    run: str
    state: str
    code: int | None
    pid: int | None
    log_bytes: int
    listening: bool | None = None  # a process of the run listens on the server's port
    foreign_listeners: tuple[int, ...] = ()


class Stopped(Struct, frozen=True, kw_only=True):
    """What is left after a stop: nothing, or it says what."""

    state: str
    code: int | None
    forced: str  # "", "group" or "kill": how far it had to go
    survivors: tuple[Mapping[str, Any], ...]
    port_free: bool
    gpu_pids: tuple[int, ...]

    @property
    def clean(self) -> bool:
        """Nothing of the run is left."""
        return not self.survivors and self.port_free and not self.gpu_pids


def host_facts(transport: Transport, arguments: Mapping[str, Any], python: str = "") -> dict[str, Any]:
    """Raw facts about the host. Raises HostCommandFailed, HostUnreachable."""
    return dict(ask(transport, hostside.command("host_facts", arguments, python=python, timeout=120)))


def start(
    transport: Transport, plan: LaunchPlan, run: str, secrets: Mapping[str, str], *, systemd: bool
) -> dict[str, Any]:
    """Upload and start; identity of the engine's process. Raises PlanRefused when the port or its lock is taken."""
    files = {"launch.sh": [launch_script(plan, run), 0o700]}
    files |= {name: [text, 0o600] for name, text in secret_files(plan, secrets).items()}
    arguments = {
        "folder": run_folder(plan, run),
        "run": run,
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


def look(
    transport: Transport, work_dir: str, runs: list[str], *, port: int | None = None, python: str = ""
) -> list[Look]:
    """A second look at these runs (all of them when the list is empty)."""
    arguments = {"work_dir": work_dir, "runs": runs, "port": port}
    rows = ask(transport, hostside.command("look", arguments, python=python))
    return [Look(**{**row, "foreign_listeners": tuple(row.get("foreign_listeners", ()))}) for row in rows]


def follow_command(plan: LaunchPlan, run: str, offset: int) -> Command:
    """The command whose stream `logtail` reads."""
    arguments = {"folder": run_folder(plan, run), "run": run, "offset": offset}
    return hostside.command("follow", arguments, python=plan.python, timeout=30)


def stop(
    transport: Transport,
    plan: LaunchPlan,
    run: str,
    *,
    drain: float = DRAIN_SECONDS,
    say: Callable[[str], None] | None = None,
) -> Stopped:
    """Stop a run and prove that nothing is left."""
    arguments = {
        "folder": run_folder(plan, run),
        "run": run,
        "host": plan.server_host,
        "port": plan.server_port,
        "drain": drain,
    }
    command = hostside.command("stop_tree", arguments, python=plan.python, timeout=drain + 60)
    last: dict[str, Any] = {}
    for row in _lines(transport, command):
        if say is not None and "step" in row:
            say(_step(row, drain))
        last = row
    if "state" not in last:
        raise HostCommandFailed("the host did not say how the stop ended", where=transport.name)
    return Stopped(
        state=last["state"],
        code=last["code"],
        forced=last["forced"],
        survivors=tuple(last["survivors"]),
        port_free=last["port_free"],
        gpu_pids=tuple(last["gpu_pids"]),
    )


def holders_text(holders: Iterable[Mapping[str, Any]]) -> str:
    """Who holds a port, for people: our runs by their id, others by pid and command."""
    named = [
        f"run {item['run']} (pid {item['pid']}; `launch stop {item['run']}`)"
        if item.get("run")
        else f"pid {item['pid']} ({item['command'][:80]})"
        for item in holders
    ]
    return ", ".join(named) or "a process that this user may not see"


def _step(row: Mapping[str, Any], drain: float) -> str:
    match row["step"]:
        case "asked":
            return f"SIGTERM to the engine (pid {row['pid']}), which drains its requests for up to {drain:.0f} s"
        case "vain":
            what = "1 request" if row["requests"] == 1 else f"{row['requests']} requests"
            return f"the engine waits for {what} that it once refused; its scheduler has none: no use waiting"
        case "group":
            return f"{len(row['pids'])} processes are left: SIGTERM to each"
        case _:
            return f"{len(row['pids'])} processes are left: SIGKILL"


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
                f"run {run} already holds port {plan.server_port} on {plan.host}",
                where=where,
                hint=f"`launch stop {run}`",
            )
        case "port-in-use":
            return PlanRefused(
                f"port {plan.server_port} on {plan.host} is taken by {holders}",
                where=where,
                hint="end it, or `--set port=…`",
            )
        case "did-not-start":
            return PlanRefused(
                f"launch.sh did not start: {answer.get('detail', '').strip() or 'no message'}", where=where
            )
        case other:
            return PlanRefused(f"the host refused the start: {other}", where=where)
