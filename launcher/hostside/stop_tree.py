"""Stops a run and proves it: SIGTERM to the main process, time to drain, SIGTERM to the group, SIGKILL, a final check.

ARGS: folder, run, port, host, drain (seconds). Prints JSON lines {"step": ...} and finally
{"state", "code", "forced", "survivors", "port_free", "gpu_pids"}.
A signal to the whole group first would make a clean stop look like a crash: the engine's watchdog would see its
schedulers die and exit with 137.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

from launcher.hostside.drain import Drain
from launcher.hostside.process import describe, is_alive, mark_stop, port_is_free, read_identity, run_pids, run_state

ARGS = {}  # a placeholder: `bundle` sets the arguments when it sends the program


def main(args):
    folder = os.path.expanduser(args["folder"])
    identity = read_identity(folder)
    if identity is None and not run_pids(args["run"], identity):
        return emit(state="not-started", code=None, forced="", survivors=[], port_free=True, gpu_pids=[])
    forced = ""
    if is_alive(identity):
        mark_stop(folder)
        emit(step="asked", pid=identity[0], drain=args["drain"])
        draining = Drain(os.path.join(folder, "server.log"), args["host"], args["port"])
        send_signal(identity[0], signal.SIGTERM)
        wait_until(lambda: not is_alive(identity) or draining.waits_for_leaked(), args["drain"])
        if is_alive(identity) and draining.leaked:
            emit(step="leaked-requests", requests=draining.requests)
        if not is_alive(identity):  # children end after their parent; on a busy host that takes seconds
            wait_until(lambda: not remaining_pids(args["run"], identity, folder), 5.0)
    for name, number, patience in (("group", signal.SIGTERM, 5.0), ("kill", signal.SIGKILL, 10.0)):
        remaining = remaining_pids(args["run"], identity, folder)
        if not remaining:
            break
        forced = name
        emit(step=name, pids=[describe(pid) for pid in remaining])
        for pid in remaining:
            send_signal(pid, number)
        wait_until(lambda: not remaining_pids(args["run"], identity, folder), patience)
    wait_until(lambda: run_state(folder)[0] != "running" and run_state(folder)[1] is not None, 10.0)
    wait_until(lambda: port_is_free(args["host"], args["port"]), 5.0)
    state, code = run_state(folder)
    survivors = [describe(pid) for pid in run_pids(args["run"], identity)]
    survivor_pids = {item["pid"] for item in survivors}
    emit(
        state=state,
        code=code,
        forced=forced,
        survivors=survivors,
        port_free=port_is_free(args["host"], args["port"]),
        gpu_pids=sorted(survivor_pids & gpu_pids()),
    )


def remaining_pids(run, identity, folder):
    """Return the live processes of a run, except the script that records its exit code."""
    return [pid for pid in run_pids(run, identity) if not is_supervisor(pid, folder)]


def is_supervisor(pid, folder):
    """Return whether the process is launch.sh, which must outlive the engine to record its exit code."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as handle:
            return handle.read().split(b"\0")[:2] == [b"sh", b"launch.sh"] and os.readlink("/proc/%d/cwd" % pid) == (
                os.path.realpath(folder)
            )
    except OSError:
        return False


def gpu_pids():
    try:
        query = ["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"]
        done = subprocess.run(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return set()
    return {int(word) for word in done.stdout.split() if word.isdigit()}


def send_signal(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        pass


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)


def emit(**fields):
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(ARGS)
