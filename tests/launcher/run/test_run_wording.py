"""Sentences about a run name what a reader needs to act, for one and for many, and for missing parts."""

from __future__ import annotations

from typing import Any

import pytest

from launcher.run import run_wording
from launcher.run.events import Activity, Overdue, Stalled, to_json
from launcher.run.frames import Sample

STALLED = Stalled(at=90.0, phase="weights", silent=61.4, last_line="x" * 500, doing="2 processes")


def row(name: str, state: str = "S") -> dict[str, Any]:
    return {"pid": 1, "name": name, "state": state, "cpu": 1.0}


def test_compilers_are_named_instead_of_figures() -> None:
    sample = Sample((row("/usr/bin/nvcc -x cu"), row("python")), 5.0, 0)
    assert run_wording.doing(Activity.COMPILING, sample, 5.0, 0) == "compiling kernels (nvcc)"


def test_idle_processes_are_counted_with_what_they_used() -> None:
    one = run_wording.doing(Activity.OTHER, Sample((row("python"),), 1.0, 0), 0.25, 2_600_000)
    assert one == "1 process, 0.2 s of CPU time, 3 MB read since the previous sample"
    many = Sample((row("a"), row("b", "D"), row("c", "T"), row("d", "T")), 1.0, 0)
    text = run_wording.doing(Activity.STOPPED, many, 0.0, 0)
    assert text.startswith("4 processes, ")
    assert text.endswith("1 waiting for disk or driver, 2 stopped by a signal")


def test_a_sample_without_processes_is_worded() -> None:
    assert run_wording.doing(Activity.OTHER, Sample((), 0.0, 0), 0.0, 0).startswith("0 processes")


def test_a_stall_names_its_phase_and_a_line_of_bounded_length() -> None:
    text = run_wording.stalled(STALLED)
    assert text.startswith("no progress for 61 s in phase `weights`")
    assert f"last line: {'x' * 160};" in text
    silent = Stalled(at=1.0, phase="p", silent=1.0, last_line="", doing="unknown")
    assert "last line: (none)" in run_wording.stalled(silent)


def test_stored_stalls_and_overdue_phases_are_worded_for_a_diagnosis() -> None:
    assert run_wording.stall_note(to_json(STALLED)).startswith("no progress for 61 s in phase `weights`")
    overdue = to_json(Overdue(at=1.0, phase="", limit=600.0, doing="1 process"))
    assert run_wording.stall_note({**overdue, "last_line": ""}) == (
        "more than 600 s in phase `import`; its processes: 1 process"
    )


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"step": "asked", "pid": 7, "drain": 90.0}, "SIGTERM to the engine (pid 7); it has up to 90 s"),
        ({"step": "leaked-requests", "requests": 1}, "1 request it already rejected; no scheduler has it,"),
        ({"step": "leaked-requests", "requests": 3}, "3 requests it already rejected; no scheduler has them,"),
        ({"step": "group", "pids": [1]}, "SIGTERM to 1 remaining process"),
        ({"step": "kill", "pids": [1, 2]}, "SIGKILL to 2 remaining processes"),
    ],
)
def test_each_step_of_a_stop_names_what_is_signalled(step: dict[str, Any], words: str) -> None:
    assert words in run_wording.stop_step(step)


@pytest.mark.parametrize("code", [2, 134, 137, 139, 143])
def test_codes_with_a_meaning_are_explained(code: int) -> None:
    assert run_wording.exited(code).startswith(f"the engine exited with code {code} (")


@pytest.mark.parametrize("code", [0, 1, None])
def test_other_codes_are_not_explained(code: int | None) -> None:
    assert run_wording.exited(code) == f"the engine exited with code {code}"
    assert run_wording.crashed_silently(code, "no cause").endswith("its log shows no cause (no cause)")
