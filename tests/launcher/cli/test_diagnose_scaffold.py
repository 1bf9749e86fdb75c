"""`diagnose scaffold`: the draft of an unknown failure, from a run, a log file or standard input."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Cli, stored
from tests.support.gate_recorded import LOG as KNOWN

SITE = "/opt/venv/lib/python3.12/site-packages/sglang/srt"
UNKNOWN = (
    "[2026-11-29 15:16:16] Load weight begin. avail mem=139.13 GB\n"
    "[2026-11-29 15:16:17 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    f'  File "{SITE}/managers/schedule_policy.py", line 500, in add_one_req\n    self.add(req)\n'
    "RuntimeError: lost 7 pages of ünïcode\n"
)
NAME = "pages-lost-in-policy"


def draft(folder: Path) -> str:
    return "".join(path.read_text() for path in sorted(folder.iterdir()))


def test_a_run_becomes_a_draft_that_names_the_next_command(cli: Cli) -> None:
    run = stored(log=UNKNOWN, engine="0.5.12")
    run.write("plan", {"engine": "0.5.12"})
    code, out, err = cli.diagnose("scaffold", run.id, NAME)
    assert (code, err) == (0, "")
    assert f"python -m checks.lint knowledge-drafts/{NAME}" in out
    assert "lost 7 pages of ünïcode" in draft(cli.folder / "knowledge-drafts" / NAME)


def test_a_log_file_becomes_a_draft_in_the_folder_of_choice(cli: Cli) -> None:
    (cli.folder / "some.log").write_text(UNKNOWN)
    code, out, _ = cli.diagnose("scaffold", "some.log", NAME, "--to", "deep/drafts", "--engine", "0.5.12")
    assert (code, f"wrote deep/drafts/{NAME}: " in out) == (0, True)
    assert any("0.5.12" in path.name for path in (cli.folder / "deep" / "drafts" / NAME).iterdir())


def test_a_log_is_read_from_standard_input(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(UNKNOWN.encode())))
    assert cli.diagnose("scaffold", "-", NAME, "--engine", "0.5.12")[0] == 0
    assert "lost 7 pages" in draft(cli.folder / "knowledge-drafts" / NAME)


@pytest.mark.parametrize(
    ("log", "name", "message"),
    [
        (KNOWN, NAME, "model-directory-without-weights"),
        ("", NAME, "no unexplained failure"),
        (UNKNOWN, "Not A Name!", "e.g. radix-cache-lost"),
        (UNKNOWN, "../outside", "e.g. radix-cache-lost"),
    ],
)
def test_what_cannot_be_drafted_is_refused_and_nothing_is_written(cli: Cli, log: str, name: str, message: str) -> None:
    (cli.folder / "some.log").write_text(log)
    code, out, err = cli.diagnose("scaffold", "some.log", name, "--engine", "0.5.12")
    assert (code, out, message in err) == (2, "", True), err
    assert not (cli.folder / "knowledge-drafts").exists() and not (cli.folder / "outside").exists()


def test_a_draft_is_never_overwritten(cli: Cli) -> None:
    (cli.folder / "some.log").write_text(UNKNOWN)
    (cli.folder / "knowledge-drafts" / NAME).mkdir(parents=True)
    code, _, err = cli.diagnose("scaffold", "some.log", NAME, "--engine", "0.5.12")
    assert (code, "already exists" in err) == (2, True)


def test_a_source_that_is_neither_a_log_nor_a_run_is_refused(cli: Cli) -> None:
    code, _, err = cli.diagnose("scaffold", "nothing", NAME)
    assert (code, "no run matches `nothing`" in err) == (2, True)
