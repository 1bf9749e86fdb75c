"""Tracebacks of several processes, interleaved line by line in one pipe, on lines that name no process."""

import itertools

from checks.during.log.incidents import Incident, incidents
from checks.during.log.interleaving import Known, Stack, advance, owner
from checks.during.log.lines import parse

START = "Traceback (most recent call last):"
LOAD = [
    START,
    '  File "/a/sglang/srt/managers/scheduler.py", line 10, in run_scheduler_process',
    "    scheduler = Scheduler(server_args)",
    '  File "/a/sglang/srt/managers/scheduler.py", line 20, in __init__',
    "    self.load_model()",
    '  File "/a/sglang/srt/model_executor/model_runner.py", line 30, in load_model',
    '    raise RuntimeError("no weights")',
    "RuntimeError: no weights",
]
CLOSED = [
    START,
    '  File "/a/sglang/srt/managers/scheduler.py", line 11, in run_scheduler_process',
    "    scheduler.event_loop()",
    '  File "/a/sglang/srt/managers/scheduler.py", line 80, in event_loop',
    "    dist.broadcast(tensor)",
    '  File "/a/torch/distributed/distributed_c10d.py", line 90, in broadcast',
    "    work.wait()",
    "ConnectionError: Connection closed by peer",
]
CHAINED = [
    START,
    '  File "/a/sglang/srt/x.py", line 1, in find',
    "    return table[key]",
    "KeyError: 'a'",
    "",
    "The above exception was the direct cause of the following exception:",
    "",
    START,
    '  File "/a/sglang/srt/x.py", line 2, in resolve',
    '    raise ValueError("bad")',
    "ValueError: bad",
]


def serious(rows: list[str]) -> list[Incident]:
    lines = [line for number, row in enumerate(rows, 1) for line in parse(row.encode(), number)]
    return [item for item in incidents(lines) if item.kind != "line"]


def in_turn(*stacks: list[str]) -> list[str]:
    return [row for rows in itertools.zip_longest(*stacks) for row in rows if row is not None]


def by_frames(*stacks: list[str]) -> list[str]:
    """In turn, each frame together with its source line."""
    whole = ("\n".join(rows).replace("\n    ", "\0    ").split("\n") for rows in stacks)
    return [row for unit in in_turn(*whole) for row in unit.split("\0")]


def shape(incident: Incident) -> list[tuple[str, list[str]]]:
    return [(part.type, [frame.function for frame in part.frames]) for part in incident.chain]


def test_two_exceptions_that_alternate_frame_by_frame_are_separated() -> None:
    found = serious(by_frames(LOAD, CLOSED))
    assert sorted(shape(item)[0] for item in found) == [
        ("ConnectionError", ["run_scheduler_process", "event_loop", "broadcast"]),
        ("RuntimeError", ["run_scheduler_process", "__init__", "load_model"]),
    ]


def test_ranks_that_fail_alike_give_one_incident_each() -> None:
    found = serious(in_turn(*[LOAD] * 8))
    assert [shape(item) for item in found] == [shape(serious(LOAD)[0])] * 8


def test_a_chain_inside_another_traceback_stays_a_chain() -> None:
    found = serious(by_frames(CHAINED, LOAD))
    assert sorted(shape(item) for item in found) == [
        [("KeyError", ["find"]), ("ValueError", ["resolve"])],
        [("RuntimeError", ["run_scheduler_process", "__init__", "load_model"])],
    ]


def test_a_record_in_the_middle_does_not_end_a_traceback() -> None:
    record = "[2026-11-29 15:25:03 TP1] Load weight begin. avail mem=1 GB"
    [found] = serious([*LOAD[:4], record, *LOAD[4:]])
    assert shape(found) == shape(serious(LOAD)[0])


def test_a_collectors_name_of_the_process_is_enough() -> None:
    found = serious(in_turn([f"node-0 | {row}" for row in CHAINED], [f"node-1 | {row}" for row in CHAINED]))
    assert [shape(item) for item in found] == [[("KeyError", ["find"]), ("ValueError", ["resolve"])]] * 2


def test_lines_below_a_record_are_of_its_rank_and_time() -> None:
    rows = [
        f"[2026-11-29 15:25:01 TP0] Scheduler hit an exception: {START}",
        f"[2026-11-29 15:25:09 TP1] Scheduler hit an exception: {START}",
        *in_turn(LOAD[1:], CLOSED[1:]),
    ]
    [first, second] = serious(rows)
    assert {(line.rank, line.time) for line in first.lines} == {("TP0", "2026-11-29 15:25:01")}
    assert {(line.rank, line.time) for line in second.lines} == {("TP1", "2026-11-29 15:25:09")}


def test_another_process_does_not_go_on_with_what_was_cut_off() -> None:
    found = serious([*LOAD[:4], "usage: sglang serve [-h]", "sglang serve: error: unrecognized arguments: --x"])
    assert [item.kind for item in found] == ["traceback", "usage"]
    assert len(found[0].lines) == 4


def test_a_source_line_follows_its_own_frame() -> None:
    known, stacks = Known(), [Stack(), Stack()]
    for stack, function in zip(stacks, ("one", "two"), strict=True):
        advance(stack, "frame", f'  File "/a/{function}.py", line 1, in {function}', known, 1)
    advance(stacks[1], "source", "    deeper()", known, 2)
    assert owner(stacks, "source", "    other()", known) == 0
    assert owner(stacks, "frame", '  File "/a/two.py", line 2, in deeper', known) == 1


def test_a_line_that_fits_no_stack_belongs_to_none() -> None:
    assert owner([Stack()], "error", "ValueError: x", Known()) == -1
