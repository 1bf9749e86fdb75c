"""A log is diagnosed with the shipped knowledge, whole or filtered on its host, and with what is known elsewhere."""

from __future__ import annotations

import pytest

from checks.during.log.scan import scan
from checks.vocabulary import LogVerdict
from launcher.flows.diagnose.log_diagnosis import diagnose_log, diagnose_scanned
from launcher.knowledge_cache import index
from tests.support.paths import CORPUS

START = b"[2026-11-29 15:16:00] Load weight begin. avail mem=139.13 GB\n"
OOM_KILL = (
    b"\n[2026-11-29 15:16:09] kernel: Out of memory: Killed process 811 (sglang::schedul) total-vm:1kB, anon-rss:1kB"
)
CRASH = (CORPUS / "0.5.11-h200" / "run-fraction-too-small.log").read_bytes()


@pytest.mark.parametrize("size", [1 << 20, 1000, 97])
def test_the_cause_does_not_depend_on_where_the_chunks_end(size: int) -> None:
    chunks = [CRASH[start : start + size] for start in range(0, len(CRASH), size)]
    diagnosis = diagnose_log(chunks)
    assert diagnosis.cause is not None and diagnosis.cause.id == "kv-pool-left-empty"


def test_a_log_without_lines_is_not_a_log() -> None:
    assert diagnose_log([]).verdict is LogVerdict.NOT_A_LOG
    assert diagnose_log([b""]).verdict is LogVerdict.NOT_A_LOG


def test_a_log_filtered_elsewhere_has_the_diagnosis_of_the_whole_log() -> None:
    whole, filtered = diagnose_log([CRASH]), diagnose_scanned(scan([CRASH], index().words), b"")
    assert (filtered.cause, filtered.fingerprint) == (whole.cause, whole.fingerprint)


def test_text_that_follows_a_filtered_log_counts() -> None:
    scanned = scan([START], index().words)
    assert diagnose_scanned(scanned, b"").cause is None
    diagnosis = diagnose_scanned(scanned, OOM_KILL)
    assert diagnosis.cause is not None and diagnosis.cause.id == "host-memory-exhausted"


def test_what_was_observed_elsewhere_turns_a_quiet_log_into_a_failure() -> None:
    observed = {"observed": {"kind": "hang"}}
    assert diagnose_log([START]).verdict is LogVerdict.STARTING
    assert diagnose_log([START], observed).verdict is LogVerdict.UNKNOWN
    assert diagnose_scanned(scan([START], index().words), b"", observed).verdict is LogVerdict.UNKNOWN
