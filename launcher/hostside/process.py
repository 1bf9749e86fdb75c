"""Reads process facts from /proc: an identity that survives pid reuse, the processes of a run, listeners on a port.

The programs that are sent to the host import these functions. Nothing here signals a process: `stop_tree` does.
"""

from __future__ import annotations

import os
import socket


def stat_fields(pid):
    """Return the fields of /proc/PID/stat from `state` on; None when the process is gone.

    The name before `state` is skipped because it may contain spaces, brackets and, as Linux cuts it after 15 bytes, a
    part of a character.
    """
    return slurp("/proc/%d/stat" % pid).rpartition(b") ")[2].decode("ascii", "replace").split() or None


def start_time(pid):
    """Return the start time in clock ticks since boot; None when the process is gone or a zombie."""
    fields = stat_fields(pid)
    return None if not fields or fields[0] in "ZX" else int(fields[19])


def boot_id():
    """Return the id of this boot: start times of different boots cannot be compared."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as handle:
            return handle.read().strip()
    except OSError:
        return ""


def read_identity(folder):
    """Return the (pid, start ticks, boot id) that launch.sh wrote, or None."""
    try:
        with open(os.path.join(folder, "pid")) as handle:
            pid, start, boot = handle.read().split()
        return int(pid), int(start), boot
    except (OSError, ValueError):
        return None


def read_exit(folder):
    """Return the exit code that launch.sh recorded, or None."""
    try:
        with open(os.path.join(folder, "rc")) as handle:
            return int(handle.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def mark_stop(folder):
    """Record, before any signal is sent, that this run was asked to stop, so that no observer calls its end a crash."""
    with open(os.path.join(folder, "asked"), "w"):
        pass


def stop_was_asked(folder):
    """Return whether this run was asked to stop."""
    return os.path.exists(os.path.join(folder, "asked"))


def is_alive(identity):
    """Return whether this very process still runs: same pid, same start time, same boot."""
    return identity is not None and identity[2] == boot_id() and start_time(identity[0]) == identity[1]


def run_state(folder):
    """Return ('running'|'exited'|'vanished'|'not-started', exit code or None); vanished: gone without an exit code."""
    identity, code = read_identity(folder), read_exit(folder)
    if code is not None:
        return "exited", code
    if identity is None:
        return "not-started", None
    if is_alive(identity):
        return "running", None
    code = read_exit(folder)  # launch.sh may have written it since the first read
    return ("exited", code) if code is not None else ("vanished", None)


def all_pids():
    """Return every visible process id of this machine."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def run_pids(run_id, identity):
    """Return every live process of a run: the main process, its descendants, its session, and all with the run id.

    Three criteria are needed because schedulers may outlive their parent and daemons may leave the session.
    """
    mark = ("SGLANG_LAUNCHER_RUN=%s" % run_id).encode()
    parents, sessions, marked = {}, {}, set()
    for pid in all_pids():
        fields = stat_fields(pid)
        if not fields or fields[0] in "ZX" or pid == os.getpid():
            continue
        parents[pid], sessions[pid] = int(fields[1]), int(fields[3])
        if mark in slurp("/proc/%d/environ" % pid).split(b"\0"):
            marked.add(pid)
    pids = set(marked)
    if is_alive(identity):
        pids.add(identity[0])
        pids |= {pid for pid, session in sessions.items() if session == sessions.get(identity[0], -1)}
    while True:
        children = {pid for pid, parent in parents.items() if parent in pids} - pids
        if not children:
            return sorted(pids)
        pids |= children


def port_is_free(host, port):
    """Return whether a server could bind this port now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def listeners(port):
    """Return the process ids that listen on a TCP port; empty when there are none or this user may not see them."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as handle:
                rows = [line.split() for line in handle.readlines()[1:]]
        except OSError:
            continue
        inodes |= {row[9] for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port}
    sockets = {"socket:[%s]" % inode for inode in inodes}
    return [pid for pid in all_pids() if sockets and _has_open(pid, sockets)]


def _has_open(pid, sockets):
    folder = "/proc/%d/fd" % pid
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            if os.readlink(os.path.join(folder, name)) in sockets:
                return True
        except OSError:
            continue
    return False


def describe(pid):
    """Return pid, shortened command line and, for a process of a run, the id of that run."""
    words = slurp("/proc/%d/cmdline" % pid).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    environ = slurp("/proc/%d/environ" % pid).decode("utf-8", "replace").split("\0")
    runs = [entry.partition("=")[2] for entry in environ if entry.startswith("SGLANG_LAUNCHER_RUN=")]
    return {"pid": pid, "command": words[:160], "run": runs[0] if runs else ""}


def slurp(path):
    """Return the content of a file in /proc; empty when it is gone or this user may not read it."""
    try:
        with open(path, "rb") as handle:
            return handle.read()
    except OSError:
        return b""
