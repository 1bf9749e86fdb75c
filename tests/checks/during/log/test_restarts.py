"""Logs that contain several starts: the last start is judged, and a note reports the earlier ones."""

import gzip
import random
import re
from pathlib import Path

import pytest

from checks.during.diagnosis import diagnose_chunks
from checks.during.log import restarts
from checks.during.log.incidents import incidents
from checks.during.log.lines import parse
from checks.during.signature_index import Index
from checks.vocabulary import Diagnosis
from tests.support import shipped
from tests.support.paths import CORPUS

LOGS = sorted(CORPUS.glob("*/*.log*"))
ARGS = "[2026-11-29 15:25:0{}] server_args=ServerArgs(model_path='/m', nnodes={}, node_rank={})"
LOADING = "[2026-11-29 15:25:03 TP{}] Load weight begin. avail mem=1 GB"
DIED = "[2026-11-29 15:25:09] Received sigquit from a child process. It usually means the child failed."


@pytest.fixture(scope="module")
def index() -> Index:
    return shipped.index()


def read(path: Path) -> bytes:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data if data.endswith(b"\n") else data + b"\n"


def begins(*rows: str) -> tuple[int, ...]:
    lines = [line for number, row in enumerate(rows, 1) for line in parse(row.encode(), number)]
    return restarts.begins(lines, incidents(lines))


def gist(found: Diagnosis, shift: int = 0) -> tuple[object, ...]:
    """What must not depend on what stood in the log before."""
    cause = found.cause and (found.cause.id, found.cause.line - shift)
    ledger = [(item.id, item.line - shift) for item in found.ledger]
    return cause, found.healthy, found.phase, found.engine, found.fingerprint, found.remedies, ledger


def starts_note(found: Diagnosis) -> str:
    return next((note for note in found.notes if " starts, at lines " in note), "")


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_log_behind_another_is_diagnosed_as_by_itself(path: Path, index: Index) -> None:
    before = read(random.Random(path.name).choice(LOGS))
    lines = before.count(b"\n")
    found = diagnose_chunks([before + read(path)], index)
    assert gist(found, lines) == gist(diagnose_chunks([read(path)], index))
    assert re.match(
        r"the log contains (?:at least )?2 starts, at lines 1, \d+; this diagnosis is about the last one; ",
        starts_note(found),
    )


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_one_start_is_not_cut(path: Path, index: Index) -> None:
    assert not starts_note(diagnose_chunks([read(path)], index))


def test_starts_that_ended_the_same_way_are_reported_together(index: Index) -> None:
    log = read(CORPUS / "0.5.23-cpu" / "d-mem.log")
    note = starts_note(diagnose_chunks([log * 3], index))
    size = log.count(b"\n")
    assert note == (
        f"the log contains 3 starts, at lines 1, {size + 1}, {2 * size + 1}; this diagnosis is about the last one; "
        "the earlier starts ended the same way"
    )


def test_starts_that_ended_otherwise_are_named(index: Index) -> None:
    log = b"".join(read(CORPUS / "0.5.23-cpu" / name) for name in ("d-mem.log", "a-normal.log", "d-notok.log"))
    note = starts_note(diagnose_chunks([log], index))
    assert "earlier starts: `kv-pool-left-empty` (line 1), no failure (line 64)" in note


def test_a_supervisors_loop_is_judged_by_its_last_round(index: Index) -> None:
    rounds, last = read(CORPUS / "0.5.23-cpu" / "d-mem.log") * 120, read(CORPUS / "0.5.23-cpu" / "d-notok.log")
    data = rounds + last
    found = diagnose_chunks((data[at : at + 65_536] for at in range(0, len(data), 65_536)), index)
    assert found.cause is not None and found.cause.id == "tokenizer-files-missing"
    assert found.cause.line > rounds.count(b"\n")
    assert "starts, at lines 1, ..." in starts_note(found)


def test_what_was_cut_off_before_does_not_reach_into_the_next_start(index: Index) -> None:
    chance = random.Random(5)
    for _ in range(25):
        before, path = read(chance.choice(LOGS)).split(b"\n"), chance.choice(LOGS)
        cut = b"\n".join(before[: chance.randrange(1, len(before))]) + b"\n"
        found, alone = diagnose_chunks([cut + read(path)], index), diagnose_chunks([read(path)], index)
        assert gist(found, cut.count(b"\n"))[:2] == gist(alone)[:2], path.name


def test_ranks_and_nodes_of_one_launch_are_one_start() -> None:
    assert begins(ARGS.format(1, 2, 0), ARGS.format(2, 2, 1), LOADING.format(0), LOADING.format(1), DIED) == (1,)
    assert begins(ARGS.format(1, 1, 0), ARGS.format(2, 1, 0), LOADING.format(0)) == (1,)


def test_a_node_that_fails_while_another_starts_is_part_of_the_launch() -> None:
    early = (
        "Traceback (most recent call last):",
        '  File "/a/sglang/launch_server.py", line 7, in <module>',
        "    from sglang.srt.server_args import prepare_server_args",
        "ImportError: libcuda.so.1: cannot open shared object file",
    )
    assert begins(*early, ARGS.format(1, 2, 0), LOADING.format(0)) == (1,)
    assert begins(*early, ARGS.format(1, 1, 0), LOADING.format(0)) == (1, 5)


def test_after_a_death_or_while_loading_arguments_begin_another_start() -> None:
    one = ARGS.format(1, 1, 0)
    assert begins(one, DIED, one) == (1, 3)
    assert begins(one, LOADING.format(0), one) == (1, 3)


def test_a_usage_text_of_another_program_is_not_a_start() -> None:
    assert begins(ARGS.format(1, 1, 0), LOADING.format(0), "usage: ninja [options]", "ninja: error: loading x") == (1,)
