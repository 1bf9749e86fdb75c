"""What every command does alike: how it ends."""

import pytest

from launcher import logfile
from launcher.cli.app import DIAGNOSE, run


def test_an_interrupted_command_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_: str) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(logfile, "chunks", interrupted)
    assert run("diagnose", DIAGNOSE, ["log", "-"]) == 130
    assert capsys.readouterr().err.strip() == "interrupted"
