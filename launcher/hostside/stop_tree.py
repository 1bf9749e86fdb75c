"""Stop a run and prove it: TERM to the main process, time to drain, then the group, then KILL, then a look around.

ARGS: folder, run, port, host, drain (seconds). Prints JSON lines {"step": ...} and a last
{"state", "code", "forced", "survivors", "port_free", "gpu_pids"}.
A signal to the whole group first would make a clean stop look like a crash: the engine's watchdog sees its
schedulers die and exits 137.
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

ARGS = {}  # put in front of the text when it is sent


def main(args):
    folder = os.path.expanduser(args["folder"])
    identity = read_identity(folder)
    if identity is None and not run_pids(args["run"], identity):
        return say(state="not-started", code=None, forced="", survivors=[], port_free=True, gpu_pids=[])
    forced = ""
    if is_alive(identity):
        mark_stop(folder)
        say(step="asked", pid=identity[0], drain=args["drain"])
        draining = Drain(os.path.join(folder, "server.log"), args["host"], args["port"])
        send(identity[0], signal.SIGTERM)
        wait(lambda: not is_alive(identity) or draining.is_vain(), args["drain"])
        if is_alive(identity) and draining.vain:
            say(step="vain", requests=draining.requests)
        if not is_alive(identity):
            wait(lambda: not rest(args["run"], identity, folder), 2.0)  # children end a moment after their parent
    for name, number, patience in (("group", signal.SIGTERM, 5.0), ("kill", signal.SIGKILL, 10.0)):
        left = rest(args["run"], identity, folder)
        if not left:
            break
        forced = name
        say(step=name, pids=[describe(pid) for pid in left])
        for pid in left:
            send(pid, number)
        wait(lambda: not rest(args["run"], identity, folder), patience)
    wait(lambda: run_state(folder)[0] != "running" and run_state(folder)[1] is not None, 2.0)
    wait(lambda: port_is_free(args["host"], args["port"]), 5.0)
    state, code = run_state(folder)
    survivors = [describe(pid) for pid in run_pids(args["run"], identity)]
    mine = {item["pid"] for item in survivors}
    say(
        state=state,
        code=code,
        forced=forced,
        survivors=survivors,
        port_free=port_is_free(args["host"], args["port"]),
        gpu_pids=sorted(mine & gpu_pids()),
    )


def rest(run, identity, folder):
    """What is left of a run, without the script that writes down its end."""
    return [pid for pid in run_pids(run, identity) if not is_supervisor(pid, folder)]


def is_supervisor(pid, folder):
    """launch.sh itself: it must outlive the engine to write down the exit code."""
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


def send(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        pass


def wait(done, seconds):
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        time.sleep(0.05)


def say(**fields):
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(ARGS)
