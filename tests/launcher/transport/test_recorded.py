"""A recorded run is replayed by the same flow, without its host."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from launcher.errors import HostCommandFailed, UsageError
from launcher.flows.launch.launch import Options, launch
from launcher.flows.launch.prepare import clock_finding
from launcher.run import remote
from launcher.run.state import State
from launcher.run.store import Run
from launcher.transport.base import Command
from launcher.transport.connect import connect
from launcher.transport.inventory import resolve
from launcher.transport.local import LocalTransport
from launcher.transport.recorded import ReplayTransport
from tests.support.bench import Bench, Witness, bench


@pytest.fixture
def recorded(tmp_path: Path) -> Bench:
    return bench(tmp_path, LocalTransport())


def replayed(recorder: Bench, run: Run) -> tuple[Witness, State, str]:
    """Replay a run; returns the observer, the final state and the log that was copied."""
    witness = Witness()
    context = replace(recorder.context, transport=ReplayTransport(run.folder), observer=witness)
    options = Options(validate=False, ignore_findings=True, ask_engine=False)
    outcome = launch(context, recorder.profile(), resolve(f"replay:{run.folder}"), options)
    assert outcome.run is not None
    return witness, outcome.state, outcome.run.log.read_text()


def test_a_replayed_crash_crashes_with_the_same_log(recorded: Bench) -> None:
    first = recorded.launch("crash")
    assert first.run is not None
    witness, state, log = replayed(recorded, first.run)
    assert state is State.CRASHED
    assert log == first.run.log.read_text()
    assert witness.kinds()[-1] == "Exited"


def test_a_replayed_server_becomes_ready(recorded: Bench) -> None:
    first = recorded.launch()
    assert first.run is not None
    remote.stop(recorded.transport, first.run, drain=5)
    witness, state, _ = replayed(recorded, first.run)
    assert state is State.READY
    assert "Ready" in witness.kinds()


def test_a_command_without_a_recorded_answer_fails(recorded: Bench) -> None:
    first = recorded.launch("usage")
    assert first.run is not None
    transport = connect(resolve(f"replay:{first.run.folder}"))
    with pytest.raises(HostCommandFailed, match="contains no answer to `dry_run`"):
        transport.run(Command(argv=("x",), label="dry_run"))
    with pytest.raises(ConnectionRefusedError):
        transport.connect("127.0.0.1", 30000, 1.0)


def test_a_folder_that_is_not_a_run_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a run folder"):
        connect(resolve(f"replay:{tmp_path}"))


@pytest.mark.parametrize(("ahead", "words"), [(3600.0, "3600 s ahead of"), (-3600.0, "3600 s behind"), (5.0, "")])
def test_a_clock_that_is_far_off_is_a_finding(ahead: float, words: str) -> None:
    now = datetime(2026, 11, 29, tzinfo=UTC)
    findings = clock_finding({"host": {"time": now.timestamp() + ahead}}, now)
    assert [words in finding.message for finding in findings] == ([True] if words else [])
