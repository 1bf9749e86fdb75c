"""A launch as people see it: each fact once, text of the host printed literally, the commands to paste next."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from checks.after.validation import LedgerItem, Level, Validation
from checks.facts.launch_evidence import Launch
from checks.vocabulary import Diagnosis, Evidence, Finding, LogVerdict, Outcome, Severity, Verdict
from launcher.cli import screen
from launcher.cli.screen import Quiet, Screen, host_line, next_steps
from launcher.flows.launch.launch import LaunchOutcome
from launcher.flows.launch.prepare import Prepared
from launcher.plan.launch_plan import LaunchPlan
from launcher.profile.file import Accepted, Profile
from launcher.run.events import (
    Answering,
    Event,
    Exited,
    Impostor,
    LinkLost,
    Overdue,
    PhaseEntered,
    Progress,
    Ready,
    Resumed,
    Stalled,
    Started,
)
from launcher.run.state import State
from tests.support.command_line import Cli, stored

HOSTILE = "[bold]x[/bold] [/] [red] \\[a]"
GPU = {"name": "H100", "count": 2, "sm": 90, "vram_gb": 80}


class Shown:
    """A screen and what it printed."""

    def __init__(self, *, verbose: bool = False, terminal: bool = False) -> None:
        self._out = io.StringIO()
        self.console = Console(file=self._out, width=300, force_terminal=terminal, color_system=None)
        self.screen = Screen(self.console, verbose=verbose)

    def events(self, *events: Event) -> list[str]:
        for event in events:
            self.screen.event(event)
        return self.lines

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self._out.getvalue().splitlines()]


def prepared(**fields: Any) -> Prepared:
    plan = LaunchPlan(profile=HOSTILE, digest="d1", host="gpu-box", engine="0.5.23", python="/usr/bin/python3",
                      work_dir="/w", flags={"tp-size": "2", "name": HOSTILE}, env={}, server_port=30000)  # fmt: skip
    blocking = Finding(id="bad", severity=Severity.ERROR, message=HOSTILE)
    accepted = (
        Finding(id="meant", severity=Severity.ERROR, message="m"),
        Accepted(id="meant", reason=HOSTILE, where=""),
    )
    parts: dict[str, Any] = {
        "profile": Profile(name="p", path="/p.yaml"), "plan": plan, "facts": {}, "systemd": False,
        "launch": Launch(engine="0.5.23", gpu=GPU), "findings": (blocking,), "accepted": (accepted,),
    }  # fmt: skip
    return Prepared(**{**parts, **fields})


def test_the_plan_is_printed_literally_before_the_start(cli: Cli) -> None:
    shown, run = Shown(), stored()
    shown.screen.prepared(prepared(), run)
    assert shown.lines[0] == f"profile  {HOSTILE} (d1)  /p.yaml"
    assert shown.lines[1] == "host     gpu-box: 2× H100 (SM90, 80 GB), SGLang 0.5.23"
    assert shown.lines[2].startswith("plan     /usr/bin/python3 -m ") and f"'{HOSTILE}'" in shown.lines[2]
    assert shown.lines[3] == f"run      {run.id}  {run.folder}"
    assert shown.lines[4:] == [f"accepted meant: {HOSTILE}", f"error  bad: {HOSTILE}"]


def test_a_dry_run_has_no_run(cli: Cli) -> None:
    shown = Shown()
    shown.screen.prepared(prepared(findings=(), accepted=()), None)
    assert [line.split()[0] for line in shown.lines] == ["profile", "host", "plan"]


@pytest.mark.parametrize(
    ("gpu", "words"),
    [
        ({}, "no GPU, SGLang 0.5.23"),
        ({"name": "H100", "count": 1}, "1× H100 (SM?, ? GB), SGLang 0.5.23"),
        ({**GPU, "nvlink": True}, "2× H100 (SM90, 80 GB, NVLink), SGLang 0.5.23"),
        ({**GPU, "nvlink": False}, "2× H100 (SM90, 80 GB, PCIe), SGLang 0.5.23"),
    ],
)
def test_a_host_is_described_by_what_was_measured(gpu: dict[str, Any], words: str) -> None:
    assert host_line(prepared(launch=Launch(engine="0.5.23", gpu=gpu))) == words


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Started(at=0.0, pid=7), "started, pid 7"),
        (Ready(at=9.0, evidence=("one", HOSTILE)), f"ready: one; {HOSTILE}"),
        (
            Stalled(at=1.0, phase="weights", silent=300.4, last_line="x", doing=HOSTILE),
            f"stalled in weights: no progress for 300 s; {HOSTILE}",
        ),
        (Overdue(at=1.0, phase="weights", limit=900, doing=HOSTILE), f"weights takes longer than 900 s: {HOSTILE}"),
        (Resumed(at=1.0, phase="weights"), "progressing again"),
        (Impostor(at=1.0, reason=HOSTILE), f"a server answers, but it is not proven to be this run: {HOSTILE}"),
        (LinkLost(at=1.0, reason=HOSTILE), f"connection lost ({HOSTILE}); the run continues, reconnecting"),
        (Exited(at=1.0, state="exited", code=137), "exited with 137"),
        (Exited(at=1.0, state="vanished", code=None), "the process disappeared without an exit code"),
    ],
)
def test_each_event_is_one_line_with_its_time(event: Event, words: str) -> None:
    assert Shown().events(event) == [f"{event.at:7.1f}s {words}"]


def test_a_phase_is_reported_when_it_ends() -> None:
    weights = PhaseEntered(at=1.0, phase="weights", title=HOSTILE)
    graphs = PhaseEntered(at=4.5, phase="graphs", title="graphs")
    assert Shown().events(weights) == []
    assert Shown().events(weights, graphs) == [f"    4.5s {HOSTILE} took 3.5 s"]
    assert Shown().events(weights, Ready(at=3.0, evidence=("e",))) == [
        f"    3.0s {HOSTILE} took 2.0 s", "    3.0s ready: e",
    ]  # fmt: skip


def test_progress_fills_no_pipe_and_updates_the_line_of_a_terminal() -> None:
    progress = Progress(at=1.0, phase="weights", text=f"{HOSTILE} shards", fraction=0.5)
    assert Shown().events(progress, progress) == []
    terminal = Shown(terminal=True)
    terminal.events(progress)
    terminal.screen.close()
    assert f"{HOSTILE} shards 50%" in "".join(terminal.lines)
    entered = Shown(terminal=True)
    entered.events(PhaseEntered(at=1.0, phase="weights", title=HOSTILE))
    entered.screen.close()
    assert HOSTILE in "".join(entered.lines)


def test_a_step_is_said_literally() -> None:
    shown = Shown()
    shown.screen.say(HOSTILE)
    assert shown.lines == [HOSTILE]


def test_health_is_only_reported_when_it_is_news() -> None:
    expected = [Answering(at=1.0, status=0), Answering(at=2.0, status=503)]
    assert Shown().events(*expected, Answering(at=3.0, status=200)) == ["    3.0s /health: 200"]
    assert Shown().events(Answering(at=1.0, status=-1), Answering(at=2.0, status=418)) == [
        "    1.0s /health: no answer in time", "    2.0s /health: 418",
    ]  # fmt: skip
    assert Shown(verbose=True).events(*expected) == [
        "    1.0s /health: connection refused", "    2.0s /health: 503, still starting",
    ]  # fmt: skip


def verdict(outcome: Outcome) -> Verdict:
    evidence = tuple(Evidence(text=f"{HOSTILE} {number}", time="noon") for number in range(5))
    return Verdict(id="deeper:task[x]", outcome=outcome, message=HOSTILE, evidence=evidence, seconds=1.26)


@pytest.mark.parametrize(
    ("outcome", "mark"),
    [
        ("pass", "✓ pass"),
        ("fail", "✗ FAIL"),
        ("inconclusive", "? inconclusive"),
        ("skip", "- skip"),
        ("error", "! error"),
    ],
)
def test_a_probe_is_one_line_with_evidence_only_where_it_matters(outcome: str, mark: str) -> None:
    shown = Shown()
    shown.screen.verdict(verdict(Outcome(outcome)))
    assert shown.lines[:2] == ["probes", f"  {mark} deeper:task[x]: {HOSTILE} 1.3 s"]
    evidence = [f"      noon {HOSTILE} {number}" for number in range(3)]
    assert shown.lines[2:] == ([] if outcome in ("pass", "skip") else evidence)


def test_the_probes_are_announced_once() -> None:
    shown = Shown()
    for _ in range(3):
        shown.screen.verdict(verdict(Outcome.PASS))
    assert shown.lines.count("probes") == 1


def outcome(state: State, cli: Cli, **fields: Any) -> LaunchOutcome:
    return LaunchOutcome(run=stored(), state=state, reason=HOSTILE, **fields)


@pytest.mark.parametrize(
    ("state", "word"),
    [("validated", "verdict"), ("ready", "ready"), ("crashed", "crashed"), ("timed-out", "timed-out")],
)
def test_the_outcome_is_one_word_and_its_reason(cli: Cli, state: str, word: str) -> None:
    shown = Shown()
    screen.outcome(shown.console, outcome(State(state), cli))
    assert shown.lines[0] == f"{word:<8} {HOSTILE}"


def test_a_failed_launch_is_explained_before_the_next_commands(cli: Cli) -> None:
    shown = Shown()
    cause = Diagnosis(verdict=LogVerdict.UNKNOWN, cause=None, sentence="Nobody knows.")
    screen.outcome(shown.console, outcome(State.CRASHED, cli, diagnosis=cause))
    assert shown.lines[1] == "cause      unknown: Nobody knows."
    assert shown.lines[2:] == ["next     diagnose last-crash", f"next     launch logs {stored_id(shown)}"]


def stored_id(shown: Shown) -> str:
    return shown.lines[-1].split()[-1]


@pytest.mark.parametrize("state", [state for state in State if state is not State.PLANNED])
def test_every_next_command_can_be_pasted(cli: Cli, state: State) -> None:
    ended = outcome(state, cli)
    steps = next_steps(ended, ended.run)
    assert steps
    for line in steps:
        program, *words = line.split()
        code, _, err = (cli if program == "launch" else cli.diagnose)(words[0], "--help")
        assert code == 0, err
        assert words[-1] in (ended.run and ended.run.id, "last-crash")


def test_only_a_run_that_may_live_is_stopped_or_validated(cli: Cli) -> None:
    for state in (State.STOPPED, State.CRASHED, State.LOST, State.REFUSED):
        ended = outcome(state, cli)
        assert not any(line.startswith(("launch stop", "launch validate")) for line in next_steps(ended, ended.run))
    assert next_steps(LaunchOutcome(run=None, state=State.PLANNED, reason=""), None) == []


def test_a_validation_lists_the_warnings_that_are_open() -> None:
    warnings = (
        LedgerItem(id="w1", title=HOSTILE, state="open", clears=("prose", "speed")),
        LedgerItem(id="w2", title="t", state="open"),
        LedgerItem(id="w3", title="t", state="cleared"),
    )
    validation = Validation(
        suite="smoke", outcome=Outcome.PASS, level=Level.READY, summary=HOSTILE, verdicts=(), warnings=warnings
    )
    shown = Shown()
    screen.validation(shown.console, validation)
    assert shown.lines == [
        f"verdict  {HOSTILE}",
        f"warning  w1: {HOSTILE} (unresolved, cleared by prose or speed)",
        "warning  w2: t (unresolved)",
    ]


def test_recorded_verdicts_are_marked_as_recorded() -> None:
    shown = Shown()
    screen.recorded(shown.console, None)
    assert shown.lines == []
    verdicts = [{"id": "task[x]", "outcome": "fail", "message": HOSTILE}]
    screen.recorded(shown.console, {"verdicts": verdicts, "summary": HOSTILE})
    assert shown.lines == ["probes   (recorded)", f"  ✗ FAIL task[x]: {HOSTILE}", f"verdict  {HOSTILE} (recorded)"]


def test_a_quiet_screen_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    quiet = Quiet()
    quiet.prepared(prepared(), None)
    quiet.event(Started(at=0.0, pid=1))
    quiet.verdict(verdict(Outcome.FAIL))
    quiet.say("text")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("result", "explained"), [(Outcome.FAIL, True), (Outcome.PASS, False)])
def test_a_server_that_failed_its_probes_is_explained_next(cli: Cli, result: Outcome, explained: bool) -> None:
    validation = Validation(
        suite="smoke", outcome=result, level=Level.READY, verdicts=(), warnings=(), summary="s", seconds=1.0
    )
    ended = outcome(State.VALIDATED, cli, validation=validation)
    assert (next_steps(ended, ended.run)[0] == f"diagnose run {ended.run and ended.run.id}") is explained
