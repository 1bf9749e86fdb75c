import gzip

import pytest

from checks.catalog.entries import PHASES
from checks.during.log import phases
from checks.during.log.lines import Line, parse
from tests.support.paths import CORPUS


def lines_of(name: str) -> list[Line]:
    path = CORPUS / name
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [line for number, raw in enumerate(data.split(b"\n"), 1) for line in parse(raw, number)]


def passed(name: str) -> list[str]:
    return [item.phase for item in phases.milestones(lines_of(name), phases.all_phases())]


def test_a_healthy_start_passes_every_phase_in_order() -> None:
    found = passed("0.5.11-h200/base.log")
    assert found == ["import", "args", "distributed", "weights", "memory", "graph-capture", "warmup", "stopping"]


def test_a_draft_model_loads_in_a_second_round() -> None:
    found = passed("0.5.11-h200/nextn-buf.log")
    assert found.count("weights") == 2 and found[-1] in ("serving", "stopping")


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("0.5.23-cpu/d-unknownflag.log.gz", "args"), ("0.5.23-cpu/e5-tp2-stop-loading.log", "distributed"),
        ("0.5.23-cpu/d-truncated.log", "weights"), ("0.5.23-cpu/b5-sigint-loading.log", "memory"),
        ("0.5.23-cpu/d-maxtok.log", "warmup"), ("0.5.23-cpu/b2-kill9-scheduler-running.log", "serving"),
    ],
)  # fmt: skip
def test_a_log_ends_in_its_phase(name: str, phase: str) -> None:
    assert passed(name)[-1] == phase


def test_the_phase_of_a_line_is_the_last_that_began() -> None:
    found = (
        phases.Milestone(phase="args", line=3, time=""),
        phases.Milestone(phase="weights", line=9, time=""),
    )
    assert [phases.phase_at(found, line) for line in (1, 3, 8, 9, 99)] == ["", "args", "args", "weights", "weights"]


def test_phases_come_in_the_order_of_a_start() -> None:
    names = [phase.id for phase in phases.all_phases()]
    assert names == [name for name in PHASES if name in names]
    assert all(phase.patience > 0 and phase.starts and phase.doing for phase in phases.all_phases())
