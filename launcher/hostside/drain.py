"""Detects that an engine, after SIGTERM, waits for requests that it had already rejected.

0.5.11 (and others) register a request before they validate it. A rejected request, for example one that is too long,
is never released, so after SIGTERM the engine waits for it forever and logs that every 5 s. Seen on a real server;
fixed in 0.5.23 (`_release_req_states_on_failure` in its tokenizer manager). Requests count as leaked only when the
scheduler itself reports that it has none.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import urllib.error
import urllib.request

REPORT = re.compile(rb"Remaining number of requests ([1-9]\d*)\. Remaining requests remaining_rids=(\[[^\n]*\])")
SAME_REPORTS = 3  # equal reports before the scheduler is queried; the engine logs one every 5 s


class Drain:
    """Reads what the engine logs after it was asked to stop."""

    def __init__(self, log, host, port):
        self.requests = 0  # how many requests the engine waits for
        self.leaked = False  # whether no scheduler has these requests
        self._log, self._address = log, (host, port)
        self._offset = size_of(log)
        self._pending = b""
        self._same = []  # the latest reports, all of the same requests

    def waits_for_leaked(self):
        """Return whether the engine waits for requests that no scheduler has. Each call reads the new log lines."""
        for report in REPORT.finditer(self._new_lines()):
            if self._same and self._same[-1] != report.group(2):
                self._same = []
            self._same.append(report.group(2))
            self.requests = int(report.group(1))
        if len(self._same) < SAME_REPORTS:
            return False
        self._same = []  # query the scheduler again only after as many further reports
        self.leaked = scheduled(*self._address) == 0
        return self.leaked

    def _new_lines(self):
        try:
            with open(self._log, "rb") as handle:
                handle.seek(self._offset)
                data = self._pending + handle.read(1 << 22)
        except OSError:
            return b""
        self._offset += len(data) - len(self._pending)
        lines, newline, self._pending = data.rpartition(b"\n")
        return lines + newline


def size_of(path):
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def scheduled(host, port):
    """Return how many requests the schedulers run or queue; None when the server does not report it (an API key)."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    base = "http://%s:%d" % ("[%s]" % name if ":" in name else name, port)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for path, read in (("/v1/loads", lambda loads: loads["aggregate"]["total_reqs"]), ("/get_load", sum_of_requests)):
        try:
            with opener.open(base + path, timeout=3) as reply:
                return int(read(json.loads(reply.read())))
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
            continue
    return None


def sum_of_requests(rows):
    """Return the sum over the ranks, from the reply of releases before 0.5.8."""
    return sum(row["num_reqs"] for row in rows)
