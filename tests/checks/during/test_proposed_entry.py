"""The entry proposed for an unknown failure can be loaded as knowledge, and recognises its own log."""

from pathlib import Path

import pytest

from checks.catalog.entries import load
from checks.during.diagnosis import diagnose
from checks.during.log.scan import scan
from checks.during.proposed_entry import NothingOpen, draft
from checks.during.reading import read
from checks.during.signature_build import build
from checks.during.signature_index import Index
from tests.support import shipped

SITE = "/opt/venv/lib/python3.12/site-packages/sglang/srt"
LOG = f"""[2026-11-29 15:16:16] Load weight begin. avail mem=139.13 GB
[2026-11-29 15:16:17 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "{SITE}/managers/scheduler.py", line 3934, in run_scheduler_process
    scheduler.event_loop_overlap()
  File "{SITE}/managers/schedule_policy.py", line 512, in add_one_req
    total = self.sum(req)
RuntimeError: pool 'kv-3' at 0x7f00 lost 12 pages (of 4096) under /data/models/m
[2026-11-29 15:16:19] Received sigquit from a child process. It usually means the child failed.
"""


@pytest.fixture(scope="module")
def index() -> Index:
    return shipped.index()


def drafted(index: Index, log: str = LOG, name: str = "pool-loses-pages") -> dict[str, str]:
    facts = {"engine_version": "0.5.12"}
    return draft(read(scan([log.encode()], index.words), index, facts), name)


def test_the_pattern_keeps_the_words_and_leaves_out_what_varies(index: Index) -> None:
    text = drafted(index)["cause.yaml"]
    assert r"RuntimeError: pool ''[^'']*'' at [\w.]+ lost [\d.]+ pages \(of [\d.]+\) under \S+" in text
    assert r'File ".*/srt/managers/schedule_policy\.py", line \d+, in add_one_req' in text


def test_the_log_of_a_proposed_entry_contains_the_failure_with_time_and_rank(index: Index) -> None:
    log = drafted(index)["match-0.5.12.log"]
    assert "[2026-11-29 15:16:17 TP0] Scheduler hit an exception" in log
    assert "RuntimeError: pool 'kv-3'" in log and "sigquit" not in log


def test_a_completed_proposed_entry_recognises_its_own_log(index: Index, tmp_path: Path) -> None:
    folder = tmp_path / "pool-loses-pages"
    folder.mkdir()
    for name, text in drafted(index).items():
        (folder / name).write_text(text.replace("title: ''", "title: The pool loses pages"))
    assert load(folder).phase == "weights"
    judge_with = build(drafts=[folder])
    log = (folder / "match-0.5.12.log").read_bytes()
    other = log.replace(b"'kv-3'", b"'kv-9'").replace(b"4096", b"77")
    for data in (log, other):
        found = diagnose(read(scan([data], judge_with.words), judge_with))
        assert found.cause is not None and found.cause.id == "pool-loses-pages"
    miss = (folder / "miss-other-message.log").read_bytes()
    assert diagnose(read(scan([miss], judge_with.words), judge_with)).cause is None


def test_a_known_failure_yields_no_proposed_entry(index: Index) -> None:
    known = (
        "ValueError: TRTLLM MLA backend is only supported on Blackwell GPUs (SM100). Please use a different backend.\n"
    )
    with pytest.raises(NothingOpen):
        drafted(index, "Traceback (most recent call last):\n" + known)


@pytest.mark.parametrize("name", ["Pool", "pool", "pool_lost", "../x-y", "-a-b"])
def test_a_cause_is_named_in_hyphenated_words(index: Index, name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a cause"):
        drafted(index, name=name)


def test_an_assert_without_a_message_is_recognised_by_its_place(index: Index) -> None:
    bare = LOG.replace(
        "RuntimeError: pool 'kv-3' at 0x7f00 lost 12 pages (of 4096) under /data/models/m", "AssertionError"
    )
    text = drafted(index, bare)["cause.yaml"]
    assert "all: ['AssertionError'," in text and "in add_one_req" in text
