"""Exit codes and errors that all commands share."""

import pytest

from launcher import logfile
from launcher.cli.app import DIAGNOSE, LAUNCH, run


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
