"""Reports the folder of Triton's compiled kernels for a launch, whether it is writable, and its file system.

Nothing is created or written: for a folder that does not exist, its nearest existing parent is judged. Part of
`host_facts`.
"""

from __future__ import annotations

import os
import re

MOUNTS = "/proc/mounts"


def triton_cache(env):
    """Return {"dir", "writable", "filesystem"} of the cache that an engine with this environment uses."""
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
    """Return the file system type of an absolute path, from the text of /proc/mounts; None if no mount contains it."""
    best, kind = "", None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape.group(1), 8)), fields[1])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # of two mounts on one point, the later one is visible
            best, kind = point, fields[2]
    return kind
