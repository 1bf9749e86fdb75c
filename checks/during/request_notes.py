"""Note the requests and transfers that failed, with the reason that the engine logs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from checks.during.log.scan import Scanned

MOST_CHARS = 300  # longest part of a message that is quoted
_FAILED_REQUESTS = (
    (
        re.compile(r'" 5(?!03)\d\d (?:Internal|Bad|Gateway|Not|\w+ )'),
        "requests answered with a server error: {count} (first at line {line})",
    ),
    (
        re.compile(r'"POST [^"]*" 4(?!04)\d\d '),
        "requests refused with a 4xx status: {count} (first at line {line}); the reply contains the reason",
    ),
    (
        re.compile(r"(?:[Pp]refill|[Dd]ecode) transfer failed|KVTransferError"),
        "KV cache transfers that failed: {count} (first at line {line}); see the other side's log",
    ),
)
# entrypoints/http_server.py, entrypoints/openai/serving_base.py, managers/scheduler.py
_REQUEST_ERROR = re.compile(r"\[http_server\] Error: |Error in request: |Grammar compilation raised an exception: ")


def request_notes(scanned: Scanned) -> Iterator[str]:
    """Count the requests and transfers that failed: the engine may have gone on, but its users saw the failures."""
    lines = scanned.lines
    reason = next((line for line in lines if _REQUEST_ERROR.search(line.text)), None)
    if reason:
        text = _REQUEST_ERROR.sub("", reason.text, count=1).strip()[:MOST_CHARS]
        yield f"a request failed, and the log reports: {text} (line {reason.number})"
    for shape, words in _FAILED_REQUESTS:
        failed = [line.number for line in lines if shape.search(line.text)]
        if failed:
            least = "at least " if scanned.dropped_regions else ""
            yield words.format(count=f"{least}{len(failed)}", line=failed[0])
