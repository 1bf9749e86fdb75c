"""A failure in any form is seen with the shipped knowledge: native lines, bare exceptions, warm-up replies, requests.

The wordings belong to no cause; they show the form only. Each must end as an unknown failure that quotes the failure.
"""

from __future__ import annotations

import pytest

from checks.during.diagnosis import diagnose_chunks
from checks.vocabulary import Diagnosis, LogVerdict
from tests.support import shipped

START = "[2026-11-29 15:24:50 TP0] Load weight begin. avail mem=78.61 GB\n"
SERVING = '[2026-11-29 15:26:00] INFO:     127.0.0.1:5 - "POST /generate HTTP/1.1" 200 OK\n'
SIGQUIT = "[2026-11-29 15:25:40] Received sigquit from a child process. It usually means the child failed.\n"
WARMUP = """\
[2026-11-29 15:25:30] Initialization failed. warmup error: Traceback (most recent call last):
  File "/a/sglang/srt/entrypoints/http_server.py", line 7, in _execute_server_warmup
    assert res.status_code == 200, f"{res.text}"
AssertionError: {"object":"error","message":"Internal server error: kernel frob: 9 dims","code":500}

"""


def diagnosed(log: str) -> Diagnosis:
    return diagnose_chunks([log.encode()], shipped.index(), engine="0.5.16")


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        ("frob_repack.cuh:309: size_q = 96 is not divisible by tile_q = 64", "not divisible"),
        ("[2026-11-29 15:25:20 TP0] RuntimeError: frobnicator exploded", "frobnicator exploded"),
        (
            "Process group watchdog thread terminated with exception:\nHIP error: frob not permitted",
            "frob not permitted",
        ),
        ("Capturing: 50%|##   | 5/10terminate called after throwing 'a::b'\n  what():  frob", "terminate called"),
        ("free(): invalid pointer", "invalid pointer"),
        ("FrobError: must be one of\n['a', 'b'], but got c", "['a', 'b'], but got c"),
    ],
)
@pytest.mark.parametrize("end", ["", SIGQUIT])
def test_a_failure_without_a_traceback_is_quoted(line: str, quoted: str, end: str) -> None:
    diagnosis = diagnosed(START + line + "\n" + end)
    assert diagnosis.verdict is LogVerdict.UNKNOWN
    assert quoted in diagnosis.sentence


def test_a_native_failure_does_not_hide_the_exception_before_it() -> None:
    log = START + "FrobError: first\nNVRM: Xid (PCI:0000:01:00): 13, pid=7\n"
    assert "FrobError: first" in diagnosed(log).sentence


def test_an_engine_that_answers_after_a_native_failure_is_healthy_and_the_failure_noted() -> None:
    diagnosis = diagnosed(START + "x.cu:7: frob failed\n" + SERVING)
    assert diagnosis.verdict is LogVerdict.HEALTHY
    assert any("frob failed" in note for note in diagnosis.notes)


def test_the_reply_to_a_failed_warm_up_request_is_the_failure() -> None:
    assert (
        "the warm-up request failed: Internal server error: kernel frob: 9 dims" in diagnosed(START + WARMUP).sentence
    )


def test_of_a_failure_that_left_only_consequences_the_first_exception_is_quoted_as_one() -> None:
    log = START + "RuntimeError: Rank 0 scheduler died during initialization (exit code: -11)\n"
    assert "exit code: -11" in (sentence := diagnosed(log).sentence)
    assert "this is a consequence" in sentence


def test_the_stack_of_a_fatal_error_shows_the_phase() -> None:
    dump = 'Fatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n  File "/a/x.py", line 3 in f\n'
    loop = '  File "/a/sglang/srt/managers/scheduler.py", line 9 in event_loop_overlap\n'
    assert diagnosed("[2026-11-29 15:25:20 TP0] frob\n" + dump + loop).phase == "serving"


def test_failed_requests_and_transfers_are_counted() -> None:
    refused = '[2026-11-29 15:25:10] INFO:     127.0.0.1:5 - "POST /generate HTTP/1.1" 500 Internal Server Error\n'
    transfer = "[2026-11-29 15:25:09 TP0] Prefill transfer failed for request rank=0 with KVTransferError(a)\n"
    notes = diagnosed(START + SERVING + transfer + refused + refused).notes
    assert "requests answered with a server error: 2 (first at line 4)" in notes
    assert any(note.startswith("KV cache transfers that failed: 1 (first at line 3)") for note in notes)


def test_refused_requests_are_counted_too() -> None:
    refused = '[2026-11-29 15:25:10] INFO:     127.0.0.1:5 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request\n'
    diagnosis = diagnosed(START + SERVING + refused)
    assert diagnosis.healthy
    assert any(note.startswith("requests refused with a 4xx status: 1 (first at line 3)") for note in diagnosis.notes)
