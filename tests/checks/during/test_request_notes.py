"""Failed requests are counted, and the reason that the engine logs is quoted."""

from __future__ import annotations

import pytest

from checks.during.log.scan import scan
from checks.during.request_notes import request_notes
from tests.support import shipped

STAMP = "[2025-12-08 23:01:15] "


def notes(*lines: str) -> list[str]:
    text = "".join(f"{STAMP}{line}\n" for line in lines)
    return list(request_notes(scan([text.encode()], shipped.index().words)))


@pytest.mark.parametrize(
    ("line", "note"),
    [
        (
            "Error in request: Could not load libtorchcodec. Likely causes:",
            "a request failed, and the log reports: Could not load libtorchcodec. Likely causes: (line 1)",
        ),
        (
            "[http_server] Error: the prompt is too long",
            "a request failed, and the log reports: the prompt is too long (line 1)",
        ),
        (
            'INFO:     127.0.0.1:1 - "POST /generate HTTP/1.1" 500 Internal Server Error',
            "requests answered with a server error: 1 (first at line 1)",
        ),
        (
            "Prefill transfer failed for request rank=0 KVTransferError: dead",
            "KV cache transfers that failed: 1 (first at line 1); see the other side's log",
        ),
    ],
)
def test_a_failed_request_is_noted(line: str, note: str) -> None:
    assert notes(line) == [note]


def test_a_server_that_answers_has_no_note() -> None:
    assert notes('INFO:     127.0.0.1:1 - "POST /generate HTTP/1.1" 200 OK') == []
