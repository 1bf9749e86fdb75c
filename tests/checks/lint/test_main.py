"""`python -m checks.lint FOLDER`: what is printed, and the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.lint.__main__ import main


def draft(root: Path, name: str, text: str) -> str:
    (root / name).mkdir()
    (root / name / "cause.yaml").write_text(text)
    return str(root / name)


def test_faults_of_drafts_are_reported_line_by_line_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faulty = draft(tmp_path, "faulty", "title: t\nfamily: parsers\n")
    sound = draft(tmp_path, "sound", "title: t\nfamily: parsers\nwhy: w\nremedies: [{text: Do it.}]\n")
    assert main([faulty, sound]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["faulty: `why` is missing", "faulty: a cause needs a remedy", "2 entries, 2 faults"]


def test_a_draft_that_cannot_be_read_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([draft(tmp_path, "new", "titel: t\n")]) == 1
    assert capsys.readouterr().out.startswith(f"{tmp_path}/new/cause.yaml:1:1: unknown key `titel`")
