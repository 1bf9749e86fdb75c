"""Real crash logs, interleaved as two to eight ranks would write them into one pipe: the diagnosis must not change."""

import gzip
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks.during.diagnosis import diagnose_chunks
from checks.during.signature_index import Index
from checks.vocabulary import Diagnosis
from tests.support import shipped
from tests.support.paths import CORPUS

LOGS = {f"{path.parent.name}/{path.name}": path for path in sorted(CORPUS.glob("*/*.log*"))}
HEAD = re.compile(rb"^(\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)( (?:DP|PP|TP|EP)\d+)*\]")
PEER = (
    b"[2026-11-29 23:59:59 TP%d] Scheduler hit an exception: Traceback (most recent call last):\n"
    b'  File "/a/sglang/srt/managers/scheduler.py", line 3121, in run_scheduler_process\n'
    b"    scheduler.event_loop_overlap()\n"
    b'  File "/a/torch/utils/_contextlib.py", line 120, in decorate_context\n'
    b"    return func(*args, **kwargs)\n"
    b"           ^^^^^^^^^^^^^^^^^^^^^\n"
    b'  File "/a/sglang/srt/managers/scheduler.py", line 1112, in event_loop_overlap\n'
    b"    recv_reqs = self.recv_requests()\n"
    b"                ^^^^^^^^^^^^^^^^^^^^\n"
    b'  File "/a/sglang/srt/managers/scheduler.py", line 1301, in recv_requests\n'
    b"    recv_reqs = broadcast_pyobj(\n"
    b'  File "/a/sglang/srt/utils/common.py", line 1212, in broadcast_pyobj\n'
    b"    dist.broadcast(tensor_size, src=src, group=dist_group)\n"
    b'  File "/a/torch/distributed/distributed_c10d.py", line 2714, in broadcast\n'
    b"    work.wait()\n"
    b"RuntimeError: [../gloo/transport/tcp/pair.cc:544] Connection closed by peer [10.0.0.4]:41234\n"
)
EACH = 2  # shuffles of one log


@pytest.fixture(scope="module")
def index() -> Index:
    return shipped.index()


def outcome(found: Diagnosis) -> str:
    return found.cause.id if found.cause else "healthy" if found.healthy else "unknown"


def read(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def shuffled(data: bytes, chance: random.Random) -> bytes | None:
    """The log with everything from its first traceback on written by several ranks at once; None without one."""
    rows = data.split(b"\n")
    at = next((number for number, row in enumerate(rows) if b"Traceback (most recent" in row), None)
    if at is None:
        return None
    ranks = range(1, chance.randint(2, 8))
    alike = chance.random() < 0.5
    others = [as_rank(rows[at:], rank) if alike else (PEER % rank).split(b"\n") for rank in ranks]
    return b"\n".join([*rows[:at], *mixed([rows[at:], *others], chance)])


def as_rank(rows: list[bytes], rank: int) -> list[bytes]:
    return [HEAD.sub(lambda head: head[1] + b" TP%d]" % rank if head[2] else head[0], row) for row in rows]


def mixed(stacks: list[list[bytes]], chance: random.Random) -> Iterator[bytes]:
    """Line by line, or in bursts, each stack in its own order."""
    burst = chance.choice((1, 2, 4, 10))
    live = [list(reversed(stack)) for stack in stacks]
    now = live[0]
    while any(live):
        if not now or chance.random() < 1 / burst:
            now = chance.choice([stack for stack in live if stack])
        yield now.pop()


def test_of_ranks_that_write_into_each_other_the_cause_is_the_same(index: Index) -> None:
    total, same, wrong = 0, 0, []
    for name, path in LOGS.items():
        data = read(path)
        alone = outcome(diagnose_chunks([data], index))
        for seed in range(EACH if alone != "healthy" else 0):
            text = shuffled(data, random.Random(f"{name} {seed}"))
            if text is None:
                break
            found = outcome(diagnose_chunks([text], index))
            total, same = total + 1, same + (found == alone)
            if found not in (alone, "unknown"):
                wrong.append((name, seed, alone, found))
    assert not wrong
    assert total > 50 and same >= 0.95 * total


def test_two_causes_at_the_same_time_give_one_of_them_or_none(index: Index) -> None:
    first, second = read(LOGS["0.5.11-h200/nextn-nobuf.log"]), read(LOGS["0.5.23-cpu/d-nopath.log"])
    both = {outcome(diagnose_chunks([text], index)) for text in (first, second)}
    for seed in range(20):
        stacks = [text[text.index(b"Traceback (most") :].split(b"\n") for text in (first, second)]
        text = b"\n".join(mixed(stacks, random.Random(seed)))
        assert outcome(diagnose_chunks([text], index)) in {*both, "unknown"}
