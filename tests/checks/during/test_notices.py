"""A responding server is healthy, whatever info and warning messages SGLang 0.5.10, 0.5.16 and 0.5.23 print.

tests/corpus/notices.txt.gz contains these messages from the source, with values replaced by 7.
"""

import gzip

import pytest

from checks.during.diagnosis import diagnose_chunks
from checks.during.signature_index import Index
from checks.vocabulary import Diagnosis
from tests.support import shipped
from tests.support.paths import CORPUS

NOTICES = gzip.decompress((CORPUS / "notices.txt.gz").read_bytes()).decode().splitlines()
BEFORE = "[2026-11-29 15:00:00 TP0] Load weight begin. avail mem=78.61 GB\n"
AFTER = (
    "[2026-11-29 15:15:03] The server is fired up and ready to roll!\n"
    '[2026-11-29 15:15:05] INFO:     127.0.0.1:5 - "POST /generate HTTP/1.1" 200 OK\n'
)
# With this message the engine reports that its output is wrong, which rules out a healthy server.
TROUBLE = ("Detected errors during sampling! NaN in the logits.",)
TOGETHER = 12


@pytest.fixture(scope="module")
def index() -> Index:
    return shipped.index()


def judged(notices: list[str], index: Index) -> Diagnosis:
    said = "".join(f"[2026-11-29 15:{number:02d}:10 TP0] {text}\n" for number, text in enumerate(notices))
    return diagnose_chunks([(BEFORE + said + AFTER).encode()], index, engine="0.5.16")


def alarms(notices: list[str], index: Index) -> list[str]:
    """The notices that alarm, found in groups and then one by one."""
    if judged(notices, index).healthy:
        return []
    return notices if len(notices) == 1 else [item for text in notices for item in alarms([text], index)]


def test_a_notice_is_not_a_cause_if_the_engine_responds_afterwards(index: Index) -> None:
    groups = [NOTICES[start : start + TOGETHER] for start in range(0, len(NOTICES), TOGETHER)]
    assert len(NOTICES) > 2500
    assert sorted(text for group in groups for text in alarms(group, index)) == sorted(TROUBLE)
