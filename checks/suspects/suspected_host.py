"""Suspect a resource of the host that the operating system's own error names: a limit, a disk, a path, a port."""

from __future__ import annotations

import re

from msgspec import Struct

from checks.suspects import attribution_wording as wording
from checks.suspects.clues import Clues
from checks.vocabulary import Remedy, Suspect


class _Resource(Struct, frozen=True):
    message: re.Pattern[str]
    name: str
    inspect: str


_RESOURCES = (
    _Resource(re.compile(r"Too many open files"), "open-file limit", "ulimit -n"),
    _Resource(
        re.compile(r"Resource temporarily unavailable|can't start new thread|pthread_create failed|Cannot fork"),
        "process, thread and address-space limits",
        "ulimit -u -v; cat /sys/fs/cgroup/pids.max",
    ),
    _Resource(re.compile(r"No space left on device|Disk quota exceeded"), "disk space", "df -h; df -h /dev/shm"),
    _Resource(re.compile(r"Cannot allocate memory|std::bad_alloc|^MemoryError"), "memory", "free -g; ulimit -v"),
    _Resource(re.compile(r"Bus error|exit code:? -7\b"), "space for memory-mapped files", "df -h /dev/shm /tmp"),
    _Resource(re.compile(r"exit code:? -24\b|SIGXCPU|CPU time limit exceeded"), "CPU time limit", "ulimit -t"),
    _Resource(re.compile(r"exit code:? -25\b|SIGXFSZ|File size limit exceeded"), "file size limit", "ulimit -f"),
    _Resource(re.compile(r"Read-only file system"), "a mount that is read-only", "findmnt; ls -ld /dev/shm /tmp"),
    _Resource(re.compile(r"File name too long|is longer than \d+ characters"), "length of a path", "echo $TMPDIR"),
    _Resource(re.compile(r"Permission denied|Operation not permitted"), "permissions", "id; ls -ld"),
    _Resource(re.compile(r"Address already in use|EADDRINUSE"), "a port that is taken", "ss -ltnp"),
    _Resource(
        re.compile(
            r"Name or service not known|Temporary failure in name resolution|Network is unreachable|No route to"
        ),
        "network",
        "getent hosts HOST; ip route",
    ),
)
SCORE = 4.0
"""Weight of such an error beside the scores of settings: more than words in common, less than a quoted value."""


def suspected_host(clues: Clues) -> Suspect | None:
    """Return the resource that an error of the operating system names; None without such an error."""
    for resource in _RESOURCES:
        match = resource.message.search(clues.message)
        if match:
            return Suspect(
                setting="host.limits",
                value=resource.name,
                reasons=(wording.system_error(match[0]),),
                experiments=(Remedy(inspect=resource.inspect),),
            )
    return None
