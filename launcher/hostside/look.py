"""Reports the state of runs on this host: running, exited with a code, vanished, not started.

ARGS: work_dir, runs (ids; empty means all), port (optional: also report who listens on it). Prints a JSON list.
"""

from __future__ import annotations

import json
import os
import sys

from launcher.hostside.process import listeners, read_identity, run_pids, run_state

ARGS = {}  # a placeholder: `bundle` sets the arguments when it sends the program


def main(args):
    root = os.path.join(os.path.expanduser(args["work_dir"]), "runs")
    try:
        names = args["runs"] or sorted(os.listdir(root))
    except OSError:
        names = []
    return [look(os.path.join(root, name), name, args.get("port")) for name in names]


def look(folder, name, port):
    identity = read_identity(folder)
    state, code = run_state(folder)
    report = {"run": name, "state": state, "code": code, "pid": identity[0] if identity else None}
    try:
        report["log_bytes"] = os.path.getsize(os.path.join(folder, "server.log"))
    except OSError:
        report["log_bytes"] = 0
    if port and state == "running":
        tree = set(run_pids(name, identity))
        holders = listeners(port)
        report["listening"] = bool(tree & set(holders))
        report["foreign_listeners"] = [pid for pid in holders if pid not in tree]
    return report


if __name__ == "__main__":
    json.dump(main(ARGS), sys.stdout)
