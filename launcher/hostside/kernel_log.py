"""Reads what the host's kernel logged while a run was alive: OOM killer, GPU faults, crashes. ARGS: since, until.

Times are POSIX seconds. Prints {"source", "lines": ["[time] kernel: text"], "notes", "oom_kills"}. Reading the kernel
log may require permissions that this user lacks: that is a note, not an error.
"""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import time

ARGS = {}  # a placeholder: `bundle` sets the arguments when it sends the program
MOST = 200  # lines to report, the last ones
KEEP = re.compile(
    r"Out of memory|out of memory|oom[-_]kill|oom_reaper|Killed process|NVRM|Xid|fallen off the bus|segfault at|"
    r"general protection|traps: |Machine [Cc]heck|Hardware Error|I/O error|blocked for more than|nvidia-nvswitch|EDAC"
)


def main(args):
    notes = []
    for source in (from_kmsg, from_journal):
        rows, note = source(args["since"])
        if note:
            notes.append(note)
        if rows is not None:
            lines = explaining(rows, args["since"], args["until"])
            return {"source": source.__name__[5:], "lines": lines, "notes": notes, "oom_kills": oom_kills()}
    return {"source": "", "lines": [], "notes": notes, "oom_kills": oom_kills()}


def explaining(rows, since, until):
    """Return, as lines, the latest messages of a period that may explain the end of a process."""
    chosen = [row for row in rows if since <= row[0] <= until and KEEP.search(row[1])]
    return ["[%s] kernel: %s" % (stamp(at), text) for at, text in chosen[-MOST:]]


def from_kmsg(since):
    """Return (time, text) of every record in the kernel's ring buffer, or None and the reason."""
    try:
        device = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return None, "/dev/kmsg: %s" % error.strerror
    booted, rows = time.time() - time.monotonic(), []
    try:
        while True:
            try:
                record = os.read(device, 8192).decode("utf-8", "replace")
            except OSError as error:
                if error.errno == errno.EPIPE:  # overwritten while it was read: continue with the next record
                    continue
                if error.errno == errno.EAGAIN:
                    return rows, ""
                return None, "/dev/kmsg: %s" % error.strerror
            head, _, text = record.partition(";")
            fields = head.split(",")
            if not record or len(fields) < 3 or not fields[2].isdigit():
                return rows, ""
            at = booted + int(fields[2]) / 1e6
            if at >= since:
                rows.append((at, text.split("\n", 1)[0]))
    finally:
        os.close(device)


def from_journal(since):
    """Return the same from the journal, which some users may read although they may not read the ring buffer."""
    words = ["journalctl", "-k", "-q", "--no-pager", "-o", "short-unix", "--since", "@%d" % since]
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20, check=False)
    except FileNotFoundError:
        return None, "journalctl: not installed"
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, "journalctl: %s" % error
    if done.returncode != 0:
        return None, "journalctl: %s" % (done.stderr.decode("utf-8", "replace").strip() or done.returncode)
    rows = []
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        match = re.match(r"(\d+(?:\.\d+)?) \S+ kernel: (.*)", line)
        if match:
            rows.append((float(match.group(1)), match.group(2)))
    return (
        rows,
        ""
        if rows
        else "journalctl: no kernel messages visible (reading them may require the group systemd-journal or adm)",
    )


def oom_kills():
    """Return how many processes the memory limit of this container has killed so far; None without such a counter."""
    try:
        with open("/sys/fs/cgroup/memory.events") as handle:
            return next((int(line.split()[1]) for line in handle if line.startswith("oom_kill ")), None)
    except (OSError, ValueError):
        return None


def stamp(at):
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


if __name__ == "__main__":
    json.dump(main(ARGS), sys.stdout)
