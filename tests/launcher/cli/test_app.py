"""Exit codes and errors that all commands share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from launcher import logfile
from launcher.cli.app import DIAGNOSE, LAUNCH, run
from launcher.cli.fault import release
from tests.support.command_line import Cli, stored
from tests.support.paths import CORPUS, ROOT

TABLES = {"launch": LAUNCH, "diagnose": DIAGNOSE}


def test_an_interrupted_command_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_: str) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(logfile, "chunks", interrupted)
    assert run("diagnose", DIAGNOSE, ["log", "-"]) == 130
    assert capsys.readouterr().err.strip() == "interrupted"


@pytest.mark.parametrize(
    "words", [["check", "smollm2-135m-cpu", "--engine", "banana"], ["schema", "--engine", "banana"]]
)
def test_a_word_that_is_not_a_release_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("launch", LAUNCH, words) == 2
    assert "`banana` is not an SGLang release" in capsys.readouterr().err


@pytest.mark.parametrize("program", TABLES)
@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_the_overview_names_every_command(program: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(program, TABLES[program], words) == 0
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert rows == list(TABLES[program])


@pytest.mark.parametrize("program", TABLES)
def test_the_release_is_printed_with_the_name_of_the_program(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(program, TABLES[program], ["--version"]) == 0
    assert capsys.readouterr().out == f"{program} (sglang-launcher) {release()}\n"


@pytest.mark.parametrize(("program", "name"), [(program, name) for program, table in TABLES.items() for name in table])
def test_every_command_exists_and_explains_itself(program: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(program, TABLES[program], [name, "--help"]) == 0
    shown = capsys.readouterr()
    assert f"Usage: {program} {name} " in shown.out and "--help" in shown.out
    assert shown.err == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["chek"], "did you mean `check`"),
        (["qqqqqq"], "unknown command `launch qqqqqq`"),
        (["", "x"], "unknown command"),
        (["--verison"], "unknown command"),
        (["list", "--no-such-option"], "No such option"),
        (["logs", "one", "two"], "unexpected extra argument"),
        (["stop", "x", "--drain", "soon"], "soon"),
    ],
)
def test_a_faulty_command_line_is_exit_code_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("launch", LAUNCH, words) == 2
    shown = capsys.readouterr()
    assert (shown.out, message in shown.err) == ("", True), shown.err


def test_an_error_that_nobody_expected_is_reported_and_not_raised(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> bytes:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(logfile, "chunks", broken)
    code, out, err = cli.diagnose("log", "-")
    assert (code, out, "internal error: ZeroDivisionError: by zero" in err) == (3, "", True)


def test_the_exit_code_of_a_command_is_that_of_the_program(cli: Cli) -> None:
    stored(state="refused", reason="r")
    assert cli.diagnose("run", "last")[0] == 2
    assert cli.diagnose("log", str(CORPUS / "0.5.11-h200" / "nextn-nobuf.log"))[0] == 1


def program(*words: str) -> subprocess.Popen[bytes]:
    start = [sys.executable, "-c", "from launcher.cli import app; import sys; getattr(app, sys.argv.pop(1))()", *words]
    return subprocess.Popen(start, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=-1, stderr=-1)


def test_the_console_script_exits_with_the_code_of_its_command(cli: Cli) -> None:
    process = program("diagnose", "log", str(Path(cli.folder) / "missing.log"))
    out, err = process.communicate()
    assert (process.returncode, out, err.startswith(b"diagnose: ")) == (2, b"", True)


def test_a_reader_that_stops_early_ends_a_command_quietly(cli: Cli) -> None:
    stored(log="line of log\n" * 400_000)
    process = program("launch", "logs")
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == b"line of log\n"
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == (b"", 0)
    process.stderr.close()


@pytest.mark.parametrize("words", [("launch", "--help"), ("launch", "explain"), ("launch", "logs")])
def test_a_reader_that_is_gone_before_the_first_line_is_not_an_error(cli: Cli, words: tuple[str, ...]) -> None:
    stored(log="one line\n")
    process = program(*words)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == (b"", 0)
    process.stderr.close()
