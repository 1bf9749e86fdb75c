"""Where Triton keeps compiled kernels for this launch: may the process write there, and on which file system is it?

Nothing is created or written: the nearest existing folder above the cache answers for it. Part of `host_facts`.
"""

from __future__ import annotations

import os
import re

MOUNTS = "/proc/mounts"


def triton_cache(env):
    """{"dir", "writable", "filesystem"} of the cache that an engine with this environment uses."""
    home = env.get("TRITON_HOME") or os.path.expanduser("~")
    folder = env.get("TRITON_CACHE_DIR") or os.path.join(home, ".triton", "cache")
    folder = os.path.abspath(os.path.expanduser(folder))
    nearest = folder
    while not os.path.lexists(nearest) and nearest != os.path.dirname(nearest):
        nearest = os.path.dirname(nearest)
    try:
        with open(MOUNTS, errors="surrogateescape") as handle:
            kind = filesystem_of(os.path.realpath(nearest), handle.read())
    except OSError:
        kind = None
    writable = os.path.isdir(nearest) and os.access(nearest, os.W_OK | os.X_OK)
    return {"dir": folder, "writable": writable, "filesystem": kind}


def filesystem_of(path, mounts):
    """The type of the file system that holds an absolute path, from the text of /proc/mounts; None when it has none."""
    best, kind = "", None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), fields[1])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # of two mounts on one point the later one is seen
            best, kind = point, fields[2]
    return kind
