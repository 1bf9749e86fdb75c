"""A second look at runs on this host: running, exited n, vanished. ARGS: work_dir, runs (ids; empty means all)."""

from __future__ import annotations

import json
import os
import sys

from launcher.hostside.process import listeners, read_identity, run_pids, run_state

ARGS = {}  # put in front of the text when it is sent


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
    found = {"run": name, "state": state, "code": code, "pid": identity[0] if identity else None}
    try:
        found["log_bytes"] = os.path.getsize(os.path.join(folder, "server.log"))
    except OSError:
        found["log_bytes"] = 0
    if port and state == "running":
        tree = set(run_pids(name, identity))
        holders = listeners(port)
        found["listening"] = bool(tree & set(holders))
        found["foreign_listeners"] = [pid for pid in holders if pid not in tree]
    return found


if __name__ == "__main__":
    json.dump(main(ARGS), sys.stdout)
