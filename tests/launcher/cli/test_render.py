"""The coloured views: text of a host or a model is printed as it is, never as markup."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from checks.vocabulary import Diagnosis, Evidence, Finding, LogVerdict, Match, Remedy, Role, Severity
from launcher.cli import render
from launcher.cli.trace_view import TraceRow
from tests.support.command_line import NOON, Cli, stored

HOSTILE = "[bold]x[/bold] [/] [red] [link=file:///etc] \\[a] C:\\dir"
MATCH = Match(id="bad-cause", role=Role.CAUSE, title=HOSTILE, evidence=(Evidence(text=HOSTILE, line=3),))
UNKNOWN = Diagnosis(verdict=LogVerdict.UNKNOWN, cause=None, sentence=HOSTILE, fingerprint="f/1")


def printed(show: Callable[[Console], None], *, colours: bool = False) -> str:
    out = io.StringIO()
    show(
        Console(
            file=out, width=400, highlight=False, force_terminal=colours, color_system="standard" if colours else None
        )
    )
    return out.getvalue()


def finding(severity: Severity) -> Finding:
    remedies = tuple(Remedy(text=f"{HOSTILE} {number}") for number in range(5))
    return Finding(id="f", severity=severity, message=HOSTILE, why=f"why {HOSTILE}", remedies=remedies)


def test_a_finding_is_printed_literally_with_reason_and_three_remedies() -> None:
    lines = printed(lambda console: render.findings(console, [finding(Severity.ERROR)])).splitlines()
    assert lines[0] == f"error  f: {HOSTILE}"
    assert lines[1].strip() == f"why {HOSTILE}"
    assert [line.strip() for line in lines[2:]] == [f"remedy {HOSTILE} {number}" for number in range(3)]


def test_a_finding_without_a_reason_has_no_empty_line() -> None:
    bare = Finding(id="f", severity=Severity.ERROR, message="m")
    assert printed(lambda console: render.findings(console, [bare])) == "error  f: m\n"


def test_an_info_finding_takes_one_line() -> None:
    assert printed(lambda console: render.findings(console, [finding(Severity.INFO)])).count("\n") == 1
    assert printed(lambda console: render.findings(console, [finding(Severity.WARNING)])).count("\n") > 1


def test_a_diagnosis_is_printed_literally() -> None:
    named = Diagnosis(
        verdict=LogVerdict.CAUSE, cause=MATCH, sentence=HOSTILE, why=HOSTILE, symptoms=(MATCH,), notes=(HOSTILE,)
    )
    text = printed(lambda console: render.diagnosis(console, named, subject=HOSTILE))
    assert text.count(HOSTILE) == 6
    assert f"cause      bad-cause: {HOSTILE}\n" in text
    assert f"symptom    {HOSTILE} (line 3)\n" in text
    assert "    line 3 [bold]x" in text


def test_the_id_of_the_cause_stands_out() -> None:
    named = Diagnosis(verdict=LogVerdict.CAUSE, cause=MATCH, sentence="s")
    text = printed(lambda console: render.diagnosis(console, named), colours=True)
    assert text.count("\x1b[1;31mbad-cause\x1b[0m") == 1
    assert text.count("bad-cause") == 2  # once more in the command for its page


def test_an_unknown_failure_is_neither_red_nor_plain() -> None:
    assert HOSTILE in printed(lambda console: render.diagnosis(console, UNKNOWN))
    text = printed(lambda console: render.diagnosis(console, UNKNOWN), colours=True)
    assert text.count("\x1b[33m") == 1 and "\x1b[1;31m" not in text
    noted = Diagnosis(verdict=LogVerdict.UNKNOWN, cause=None, sentence="s", why="w")
    assert "\x1b[33mw" not in printed(lambda console: render.diagnosis(console, noted), colours=True)
    healthy = Diagnosis(verdict=LogVerdict.HEALTHY, cause=None, sentence="s")
    assert "\x1b[33m" not in printed(lambda console: render.diagnosis(console, healthy), colours=True)


def test_consequences_are_fainter_than_the_cause() -> None:
    named = Diagnosis(verdict=LogVerdict.CAUSE, cause=MATCH, sentence="s", why="w", notes=("n",))
    text = printed(lambda console: render.diagnosis(console, named), colours=True)
    assert "\x1b[2mn\x1b[0m" in text and "\x1b[2mw\x1b[0m" not in text


def test_a_trace_is_printed_literally_and_indented() -> None:
    rows = [
        TraceRow(label="rule 1", text=HOSTILE, holds="no"),
        TraceRow(label="", text=HOSTILE, holds="unknown", depth=2),
        TraceRow(label="", text="a", holds="yes"),
        TraceRow(label="result", text=HOSTILE),
    ]
    assert printed(lambda console: render.trace(console, rows)).splitlines() == [
        f"rule 1     no       {HOSTILE}",
        f"  unknown      {HOSTILE}",
        "  yes      a",
        f"result     {HOSTILE}",
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (-5, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (5 * 86400, "5 d"), (400 * 86400, "400 d")],
)
def test_an_age_is_in_its_largest_unit(seconds: float, words: str) -> None:
    assert render.age(seconds) == words


def test_the_table_of_runs_shows_state_level_and_age(cli: Cli) -> None:
    now = NOON.timestamp()
    runs = [
        stored("chat", state="validated", level="good enough", created=now - 7200),
        stored("[red]odd", state="crashed", level="good enough", created=now + 30),
        stored("bare"),
    ]
    table = render.runs_table(runs, now)
    lines = printed(lambda console: console.print(table)).splitlines()
    assert lines[0].split() == ["run", "state", "profile", "host", "engine", "age"]
    assert lines[1].split() == [runs[0].id, "validated", "(good", "enough)", "chat", "local", "0.5.23", "2", "h"]
    assert lines[2].split() == [runs[1].id, "crashed", "[red]odd", "local", "0.5.23", "0", "s"]
    assert lines[3].split()[-2:] == ["0", "s"]


@pytest.mark.parametrize(
    ("state", "colour"), [("ready", "green"), ("validated", "green"), ("lost", "red"), ("stalled", "yellow")]
)
def test_the_colour_of_a_state_says_whether_to_act(state: str, colour: str) -> None:
    assert render.state_text({"state": state}) == f"[{colour}]{state}[/]"


def test_a_run_without_a_state_is_planned() -> None:
    assert "planned" in render.state_text({})


@pytest.mark.parametrize("console", [render.err, render.out])
def test_a_pipe_receives_whole_lines_without_colours(console: Callable[[], Console]) -> None:
    assert console().soft_wrap
    assert not console().is_terminal


def test_progress_and_answers_go_to_different_streams(capsys: pytest.CaptureFixture[str]) -> None:
    render.err().print("progress")
    render.out().print("answer 1 'quoted' " + "x" * 300)
    shown = capsys.readouterr()
    assert (shown.err, shown.out) == ("progress\n", "answer 1 'quoted' " + "x" * 300 + "\n")
