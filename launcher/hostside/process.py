"""Process facts out of /proc: identity that survives pid reuse, the tree of a run, who listens on a port."""

from __future__ import annotations

import os
import socket


def stat_fields(pid):
    """Fields of /proc/PID/stat from `state` on (a name may hold spaces and brackets); None when it is gone."""
    try:
        with open("/proc/%d/stat" % pid) as handle:
            return handle.read().rpartition(") ")[2].split()
    except (OSError, ValueError):
        return None


def start_time(pid):
    """Start time in clock ticks since boot, or None when the process is gone or only a zombie."""
    fields = stat_fields(pid)
    return None if not fields or fields[0] in "ZX" else int(fields[19])


def boot_id():
    """Identifies this boot: start times of another boot mean nothing."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as handle:
            return handle.read().strip()
    except OSError:
        return ""


def read_identity(folder):
    """(pid, start ticks, boot id) that launch.sh wrote, or None."""
    try:
        with open(os.path.join(folder, "pid")) as handle:
            pid, start, boot = handle.read().split()
        return int(pid), int(start), boot
    except (OSError, ValueError):
        return None


def read_exit(folder):
    """The exit code that launch.sh recorded, or None."""
    try:
        with open(os.path.join(folder, "rc")) as handle:
            return int(handle.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def mark_stop(folder):
    """Note that somebody asked this run to stop, before any signal: its end is then no crash, whoever watches it."""
    with open(os.path.join(folder, "asked"), "w"):
        pass


def stop_was_asked(folder):
    """Whether somebody asked this run to stop."""
    return os.path.exists(os.path.join(folder, "asked"))


def is_alive(identity):
    """Whether exactly that process still runs: same pid, same start time, same boot."""
    return identity is not None and identity[2] == boot_id() and start_time(identity[0]) == identity[1]


def run_state(folder):
    """('running'|'exited'|'vanished'|'not-started', exit code or None). Vanished: gone without an exit code."""
    identity, code = read_identity(folder), read_exit(folder)
    if code is not None:
        return "exited", code
    if identity is None:
        return "not-started", None
    if is_alive(identity):
        return "running", None
    code = read_exit(folder)  # it may have been written between the two looks
    return ("exited", code) if code is not None else ("vanished", None)


def all_pids():
    """Every process id of this machine that is visible."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def run_pids(run_id, identity):
    """Every live process of a run: descendants of the main one, its session, and whoever carries the run id.

    Schedulers may outlive their parent and daemons may leave the session: three nets instead of one.
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
    found = set(marked)
    if is_alive(identity):
        found.add(identity[0])
        found |= {pid for pid, session in sessions.items() if session == sessions.get(identity[0], -1)}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return sorted(found)
        found |= more


def port_is_free(host, port):
    """Whether the server could bind that port now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def listeners(port):
    """Process ids that listen on a TCP port; empty when nobody does or they are not ours to see."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as handle:
                rows = [line.split() for line in handle.readlines()[1:]]
        except OSError:
            continue
        inodes |= {row[9] for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port}
    wanted = {"socket:[%s]" % inode for inode in inodes}
    return [pid for pid in all_pids() if wanted and _holds(pid, wanted)]


def _holds(pid, wanted):
    folder = "/proc/%d/fd" % pid
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            if os.readlink(os.path.join(folder, name)) in wanted:
                return True
        except OSError:
            continue
    return False


def describe(pid):
    """pid and command line of a process, shortened, and the run it belongs to when it is one of ours."""
    words = slurp("/proc/%d/cmdline" % pid).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    environ = slurp("/proc/%d/environ" % pid).split(b"\0")
    runs = [entry.split(b"=", 1)[1].decode() for entry in environ if entry.startswith(b"SGLANG_LAUNCHER_RUN=")]
    return {"pid": pid, "command": words[:160], "run": runs[0] if runs else ""}


def slurp(path):
    """Content of a file of /proc; empty when it is gone or not ours to read."""
    try:
        with open(path, "rb") as handle:
            return handle.read()
    except OSError:
        return b""
