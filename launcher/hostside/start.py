"""Writes a run's files on the host and starts the run in its own session; refuses when the port is taken.

ARGS: folder, run, port, host, lock, files {name: [text, mode]}, systemd (bool). Prints one JSON object:
{"started": {pid, start, boot}} or {"refused": reason, "run"|"holders": ...}.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time

from launcher.hostside.process import boot_id, describe, listeners, port_is_free, read_exit, read_identity

ARGS = {}  # a placeholder: `bundle` sets the arguments when it sends the program
LOCK_FD = 9  # the engine inherits it from launch.sh and so holds the lock of the port for as long as it lives


def main(args):
    os.umask(0o077)
    folder = os.path.expanduser(args["folder"])
    lock = os.path.expanduser(args["lock"])
    os.makedirs(os.path.dirname(lock), exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(handle, 200).decode("utf-8", "replace").strip()
        return {"refused": "port-locked", "run": holder, "holders": [describe(pid) for pid in listeners(args["port"])]}
    if not port_is_free(args["host"], args["port"]):
        return {"refused": "port-in-use", "holders": [describe(pid) for pid in listeners(args["port"])]}
    if os.path.exists(os.path.join(folder, "launch.sh")):
        return {"refused": "run-exists"}
    os.makedirs(folder, exist_ok=True)
    for name, (text, mode) in args["files"].items():
        write(os.path.join(folder, name), text, mode)
    os.ftruncate(handle, 0)
    os.pwrite(handle, args["run"].encode(), 0)
    spawn(folder, args, handle)
    return await_identity(folder)


def write(path, text, mode):
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(handle, "w") as out:
        out.write(text)


def spawn(folder, args, handle):
    """Start launch.sh with nohup in a new session; with `systemd`, as a user service, which survives the logout.

    A user service survives only when lingering is enabled for the user (logind).
    """
    words = ["nohup", "sh", "launch.sh"]
    if args.get("systemd"):
        fcntl.flock(handle, fcntl.LOCK_UN)  # launch.sh takes the lock itself
        unit = "sglang-launcher-" + args["run"]
        words = ["systemd-run", "--user", "--quiet", "--collect", "--unit", unit, "--working-directory", folder]
        words += ["sh", "launch.sh"]
    else:
        os.dup2(handle, LOCK_FD, inheritable=True)
    with open(os.path.join(folder, "supervisor.log"), "ab") as log, open(os.devnull, "rb") as nothing:
        subprocess.Popen(
            words,
            cwd=folder,
            stdin=nothing,
            stdout=log,
            stderr=log,
            start_new_session=True,
            close_fds=True,
            pass_fds=() if args.get("systemd") else (LOCK_FD,),
        )


def await_identity(folder):
    """Wait up to 5 s for the identity of the engine's process; launch.sh needs milliseconds to write it."""
    for _ in range(500):
        ended = read_exit(folder) is not None  # read first: an engine that ends at once has written its identity before
        identity = read_identity(folder)
        if identity is not None:
            return {"started": {"pid": identity[0], "start": identity[1], "boot": identity[2]}}
        if ended:
            break
        time.sleep(0.01)
    with open(os.path.join(folder, "supervisor.log"), errors="replace") as log:
        return {"refused": "did-not-start", "detail": log.read()[-2000:], "boot": boot_id()}


if __name__ == "__main__":
    json.dump(main(ARGS), sys.stdout)
