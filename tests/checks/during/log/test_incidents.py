import random
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from checks.during.log.incidents import Incident, incidents
from checks.during.log.lines import Line, parse
from tests.support.paths import CORPUS

FRAMES = '  File "/a/sglang/srt/x.py", line 1, in f\n    go()\n    ^^^^\n'


def read(text: str) -> list[Incident]:
    lines = [line for number, raw in enumerate(text.encode().split(b"\n"), 1) for line in parse(raw, number)]
    return list(incidents(lines))


def serious(text: str) -> list[Incident]:
    return [item for item in read(text) if item.kind != "line"]


def test_a_chain_is_one_incident_with_the_root_first() -> None:
    [found] = serious(
        f"Traceback (most recent call last):\n{FRAMES}KeyError: 'a'\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        f"Traceback (most recent call last):\n{FRAMES}ValueError: bad\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        f"Traceback (most recent call last):\n{FRAMES}pkg.Wrapped: worse\n"
    )
    assert [(part.type, part.message) for part in found.chain] == [
        ("KeyError", "'a'"), ("ValueError", "bad"), ("pkg.Wrapped", "worse"),
    ]  # fmt: skip


def test_a_message_of_many_lines_ends_at_the_next_record() -> None:
    [found] = serious(
        f"[2026-11-29 15:25:03 TP1] Scheduler hit an exception: Traceback (most recent call last):\n{FRAMES}"
        "ImportError: \n[sgl_kernel] CRITICAL: no library\n\nAttempted locations:\n- one\n\n"
        "[2026-11-29 15:25:03] Received sigquit from a child process.\n"
    )
    assert found.rank == "TP1"
    assert found.chain[0].message == "[sgl_kernel] CRITICAL: no library\n\nAttempted locations:\n- one"


def test_an_exception_without_message_is_found() -> None:
    [found] = serious(f"Traceback (most recent call last):\n{FRAMES}AssertionError\n")
    assert (found.chain[0].type, found.chain[0].message) == ("AssertionError", "")
    assert found.chain[0].frames[-1].function == "f"


def test_two_tracebacks_in_a_row_are_two_incidents() -> None:
    one = f"Traceback (most recent call last):\n{FRAMES}KeyboardInterrupt\n"
    assert len(serious(one + one)) == 2


def test_a_traceback_cut_by_another_rank_is_put_together() -> None:
    first, second = serious(
        "[2026-11-29 15:25:03 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/a/one.py", line 1, in one\n'
        "[2026-11-29 15:25:03 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/a/two.py", line 1, in two\n'
        "ValueError: two\n"
        '  File "/a/one.py", line 2, in deeper\n'
        "TypeError: one\n"
    )
    assert (first.rank, first.chain[0].type) == ("TP0", "TypeError")
    assert (second.rank, second.chain[0].type) == ("TP1", "ValueError")
    assert first.interleaved and not first.headless


def test_lines_that_name_their_rank_are_separated() -> None:
    a = [f"[rank0]: {row}" for row in ("Traceback (most recent call last):", *FRAMES.splitlines(), "ValueError: a")]
    b = [f"[rank1]: {row}" for row in ("Traceback (most recent call last):", *FRAMES.splitlines(), "TypeError: b")]
    found = serious("\n".join(row for pair in zip(a, b, strict=True) for row in pair))
    assert sorted((item.rank, item.chain[-1].type) for item in found) == [
        ("rank0", "ValueError"),
        ("rank1", "TypeError"),
    ]


def test_a_missing_start_is_reported() -> None:
    [found] = serious(f"{FRAMES}ValueError: x\n")
    assert found.chain[0].type == "ValueError"
    assert found.headless and not found.interleaved


def test_a_missing_end_is_reported() -> None:
    [found] = serious(f"Traceback (most recent call last):\n{FRAMES}")
    assert found.chain[0].type == "" and found.tailless


def test_of_a_usage_text_the_error_is_the_incident() -> None:
    [found] = serious(
        "usage: sglang serve [-h]\n             [--a {b,c}]\nsglang serve: error: unrecognized arguments: --x\n"
    )
    assert found.kind == "usage" and found.lines[-1].text.endswith("--x")


def test_a_death_of_native_code_is_one_incident() -> None:
    [found] = serious(
        "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: x\nframe #0: f\n"
    )
    assert found.kind == "fatal" and len(found.lines) == 3
    assert serious('!!!!!!! Segfault encountered !!!!!!!\n  File "<unknown>", line 0, in x\n')[0].kind == "fatal"
    assert serious("Fatal Python error: Segmentation fault\n")[0].kind == "fatal"


def test_an_exception_group_is_one_incident() -> None:
    [found] = serious(
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "/a/x.py", line 1, in f\n'
        "  | ExceptionGroup: two things (2 sub-exceptions)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | Traceback (most recent call last):\n"
        '    |   File "/a/y.py", line 2, in g\n'
        "    | ValueError: inner\n"
        "    +------------------------------------\n"
    )
    assert found.chain[0].type == "ExceptionGroup" and "inner" in found.chain[0].message


def test_a_shell_message_does_not_belong_to_an_exception() -> None:
    [found] = serious(f"Traceback (most recent call last):\n{FRAMES}ValueError: x\nbash: line 1: 4711 Killed  python\n")
    assert found.chain[0].message == "x"


def test_raw_lines_take_the_time_of_the_record_above() -> None:
    [found] = serious(f"[2026-11-29 15:25:03 TP1] hello\nTraceback (most recent call last):\n{FRAMES}ValueError: x\n")
    assert found.time == "2026-11-29 15:25:03"


LOGS = sorted(CORPUS.glob("*/*.log"))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(LOGS), st.integers(0, 2**32))
def test_damaged_logs_are_read_and_lose_no_line(path: Path, seed: int) -> None:
    chance = random.Random(seed)
    rows = path.read_text(errors="replace").split("\n")
    for _ in range(20):
        place = chance.randrange(len(rows))
        match chance.randrange(4):
            case 0:
                del rows[place:][: chance.randrange(5)]
            case 1:
                rows.insert(place, rows[chance.randrange(len(rows))])
            case 2:
                rows[place] = rows[place][: chance.randrange(len(rows[place]) + 1)]
            case _:
                rows[place] = "".join(chance.choice("|[]: \t\x00é") for _ in range(9)) + rows[place]
    lines = [line for number, row in enumerate(rows, 1) for line in parse(row.encode(), number)]
    found = incidents(lines)
    assert sum(len(item.lines) for item in found) <= len(lines)
    wanted = {line.number for line in lines if "Traceback (most" in line.text}
    assert wanted <= {line.number for item in found for line in item.lines}


def test_many_unfinished_tracebacks_take_linear_work() -> None:
    line = Line(number=1, text='  File "/a/x.py", line 1, in f')
    found = incidents(Line(number=n * 999, text=line.text) for n in range(1, 30_000))
    assert len(found) == 29_999


def test_a_message_of_several_lines_is_one_paragraph() -> None:
    [found] = serious(
        f"Traceback (most recent call last):\n{FRAMES}ValueError: one of\n['a', 'b'],\n  but got c\n\nnote\n"
    )
    assert found.last is not None and found.last.paragraph == "one of ['a', 'b'], but got c"


def test_an_exception_that_follows_an_ended_traceback_is_its_own_incident() -> None:
    first, second = serious(
        f"Traceback (most recent call last):\n{FRAMES}ImportError: cannot import name 'gone'\n"
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -3)\n"
    )
    assert first.last is not None and first.last.type == "ImportError"
    assert second.last is not None and second.last.type == "RuntimeError"


def test_the_exception_to_quote_is_the_one_that_the_last_repeats_among_advice() -> None:
    log = (
        'Traceback (most recent call last):\n  File "/a.py", line 1, in f\nRuntimeError: shapes do not fit\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "/b.py", line 2, in g\n'
        "Exception: Capture failed: shapes do not fit\nPossible solutions: lower it\n"
    )
    [incident] = read(log)
    assert incident.telling is not None
    assert incident.telling.type == "RuntimeError"


def test_of_a_chain_whose_end_is_missing_the_exception_before_is_quoted() -> None:
    log = (
        'Traceback (most recent call last):\n  File "/a.py", line 1, in f\nKeyError: "no such GPU"\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "/b.py", line 2, in g\n    g()\n'
    )
    [incident] = read(log)
    assert incident.tailless
    assert incident.telling is not None
    assert incident.telling.type == "KeyError"
