"""A trace reads the log once more: it agrees with the diagnosis, and every fact has a source that can be looked up."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from checks.during.log.scan import scan
from checks.facts.origins import origin
from launcher.flows.diagnose.log_diagnosis import diagnose_log
from launcher.flows.diagnose.run_diagnosis import HostEvidence, diagnose_run
from launcher.flows.diagnose.traced import Traced, read_log, read_run, stated_by_run, stated_in, traced
from launcher.knowledge_cache import index
from launcher.run.store import Run, RunStore
from tests.support.paths import CORPUS, ROOT

LOG = CORPUS / "0.5.11-h200" / "run-fraction-too-small.log"
CAUSE, OTHER = "kv-pool-left-empty", "host-memory-exhausted"
OOM_KILL = (
    "[2026-11-29 15:16:09] kernel: Out of memory: Killed process 811 (sglang::schedul) total-vm:1kB, anon-rss:1kB"
)
START = b"[2026-11-29 15:16:00] Load weight begin. avail mem=139.13 GB\n"


def of_log(slug: str, stated: dict[str, str] | None = None) -> Traced:
    diagnosis, reading = read_log([LOG.read_bytes()], {}, "")
    return traced(slug, diagnosis, reading, stated or {})


def speaks(item: Traced) -> bool:
    """Whether the entry fired and some pattern of it matched what was read for the trace."""
    return item.trace.fired and any(pattern.speaks for pattern in item.trace.patterns)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    created = RunStore(tmp_path).create("fake", datetime(2026, 11, 29, 15, 16, tzinfo=UTC))
    created.log.write_bytes(LOG.read_bytes())
    created.update(state="crashed", host="box", engine="0.5.11", exit=1)
    return created


def test_reading_a_log_for_a_trace_does_not_change_its_diagnosis() -> None:
    diagnosis, reading = read_log(iter([LOG.read_bytes()]), {}, "")
    assert diagnosis == diagnose_log([LOG.read_bytes()])
    assert reading.facts["engine.version"] == "0.5.11"


def test_the_entry_that_the_diagnosis_names_fired() -> None:
    item = of_log(CAUSE)
    assert (item.trace.fired, item.trace.winner, item.trace.release) == (True, "", "0.5.11")
    assert speaks(item)


def test_another_entry_did_not_fire_and_the_winner_is_named() -> None:
    trace = of_log(OTHER).trace
    assert (trace.fired, trace.winner) == (False, CAUSE)
    assert [pattern.reason for pattern in trace.patterns if not pattern.speaks] != []


def test_every_fact_of_a_trace_has_a_source_unless_it_is_assumed() -> None:
    item = of_log(CAUSE)
    assert len(item.facts) > 50
    assumed = [name for name in item.facts if origin(name, item.facts, item.sources) == "assumed by default"]
    assert assumed == ["host.platform"]


def test_a_fact_names_the_line_that_it_was_read_from_and_a_derived_one_its_module() -> None:
    item = of_log(CAUSE)
    line = int(item.sources["flag.model-path"].removeprefix("read from log line "))
    assert "model_path=" in LOG.read_text().splitlines()[line - 1]
    module = item.sources["launch.tp_size"].removeprefix("derived by ")
    assert "tp_size" in (ROOT / module).read_text()


def test_what_the_caller_states_goes_before_what_the_log_shows() -> None:
    assert of_log(CAUSE, {"flag.model-path": "given by me"}).sources["flag.model-path"] == "given by me"


def test_of_a_log_with_several_starts_the_last_one_is_traced() -> None:
    twice = LOG.read_bytes() + LOG.read_bytes()
    diagnosis, reading = read_log([twice], {}, "")
    lines = {pattern.line for pattern in traced(CAUSE, diagnosis, reading, {}).trace.patterns if pattern.speaks}
    assert min(lines) > LOG.read_bytes().count(b"\n")


def test_a_run_is_read_as_its_diagnosis_reads_it(run: Run) -> None:
    reading = read_run(run)
    assert speaks(traced(CAUSE, diagnose_run(run), reading, {}))


def test_the_kernel_log_and_a_log_filtered_on_the_host_are_read_too(run: Run) -> None:
    evidence = HostEvidence(kernel=(OOM_KILL,), log=scan([START], index().words))
    assert speaks(traced(OTHER, diagnose_run(run, evidence), read_run(run, evidence), {}))
    run.log.write_bytes(START)
    evidence = HostEvidence(kernel=(OOM_KILL,))
    assert speaks(traced(OTHER, diagnose_run(run, evidence), read_run(run, evidence), {}))


def test_facts_of_a_file_are_stated_by_the_file_and_empty_ones_by_nobody() -> None:
    case = {"engine": "0.5.12", "flags": {"tp-size": "2"}, "gpu": {}, "env": None}
    assert stated_in(case, "given in x") == dict.fromkeys(("engine.version", "flag.tp-size"), "given in x")
    assert stated_in({}, "given in x") == {}


def test_what_a_file_leaves_out_is_not_stated_by_it() -> None:
    assert "engine.version" not in stated_in({"flags": {"tp-size": "2"}}, "x")
    assert "host.platform" not in stated_in({"gpu": {"name": "H100", "sm": 90}}, "x")
    assert stated_in({"gpu": {"platform": "cpu"}}, "x") == {"host.platform": "x"}


def test_a_run_states_the_facts_of_its_launch_with_the_files_that_have_them(run: Run) -> None:
    assert stated_by_run(run) == {}
    run.write("plan", {"engine": "0.5.11"})
    run.write("launch", {"engine": "0.5.11", "flags": {"tp-size": "2"}})
    stated = stated_by_run(run)
    assert stated["flag.tp-size"] == f"recorded in {run.folder / 'launch.json'}"
    assert stated["engine.version"] == f"recorded in {run.folder / 'plan.json'}"
