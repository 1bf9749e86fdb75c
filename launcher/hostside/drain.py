"""Does an engine that was asked to stop still work on requests, or wait for some that it refused long ago?

0.5.11 (and others) book a request before they check it: one that is refused, for its length for example, stays in the
books, and after SIGTERM the engine waits for it without end, saying so every 5 s. Seen on a real server; mended in
0.5.23 (`_release_req_states_on_failure` in its tokenizer manager). Only where the scheduler itself says that it has no
request is such a wait called one for nothing.
"""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request

REPORT = re.compile(rb"Remaining number of requests ([1-9]\d*)\. Remaining requests remaining_rids=(\[[^\n]*\])")
SAME_REPORTS = 3  # one every 5 s


class Drain:
    """What the log says since the engine was asked to stop."""

    def __init__(self, log, host, port):
        self.requests = 0  # how many are waited for
        self.vain = False
        self._log, self._address = log, (host, port)
        self._offset = size_of(log)
        self._pending = b""
        self._same = []  # the latest reports that name the same requests

    def is_vain(self):
        """Whether the engine waits for requests that no scheduler has. Reads on in the log each time."""
        for found in REPORT.finditer(self._new_lines()):
            if self._same and self._same[-1] != found.group(2):
                self._same = []
            self._same.append(found.group(2))
            self.requests = int(found.group(1))
        if len(self._same) < SAME_REPORTS:
            return False
        self._same = []  # asked again only after as many more
        self.vain = scheduled(*self._address) == 0
        return self.vain

    def _new_lines(self):
        try:
            with open(self._log, "rb") as handle:
                handle.seek(self._offset)
                fresh = self._pending + handle.read(1 << 22)
        except OSError:
            return b""
        self._offset += len(fresh) - len(self._pending)
        whole, newline, self._pending = fresh.rpartition(b"\n")
        return whole + newline


def size_of(path):
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def scheduled(host, port):
    """How many requests the schedulers run or hold in their queues; None when the server does not tell (a key)."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    base = "http://%s:%d" % ("[%s]" % name if ":" in name else name, port)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for path, read in (("/v1/loads", lambda found: found["aggregate"]["total_reqs"]), ("/get_load", counted)):
        try:
            with opener.open(base + path, timeout=3) as reply:
                return int(read(json.loads(reply.read())))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def counted(rows):
    """The form that releases before 0.5.8 have."""
    return sum(row["num_reqs"] for row in rows)
