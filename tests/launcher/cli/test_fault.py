"""The error handler's output: one line and a hint for what a user can fix, a report file for what only we can."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.after.probes.expectations import ExpectError
from checks.catalog.yaml_reader import YamlError
from launcher.cli.fault import release, report
from launcher.errors import HostUnreachable, LauncherError, ProfileError, UsageError


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SGLANG_LAUNCHER_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def shown(capsys: pytest.CaptureFixture[str], error: Exception, *words: str) -> tuple[int, str]:
    code = report(error, "launch", words)
    out, err = capsys.readouterr()
    assert out == ""
    return code, err


def test_an_expected_error_is_one_line_with_its_hint(capsys: pytest.CaptureFixture[str], state: Path) -> None:
    assert shown(capsys, HostUnreachable("no [route] to gpu-box", hint="try ping")) == (
        4, "launch: no [route] to gpu-box\n  hint: try ping\n",
    )  # fmt: skip
    assert not state.exists()


def test_an_error_without_a_hint_has_no_empty_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, UsageError("wrong")) == (2, "launch: wrong\n")


def test_the_place_of_an_error_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, ProfileError("bad", where="p.yaml:3:1"))[1] == "launch: p.yaml:3:1: bad\n"
    assert shown(capsys, ProfileError("p.yaml:3:1 is bad", where="p.yaml:3:1"))[1] == "launch: p.yaml:3:1 is bad\n"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ExpectError("`suite` is wrong"), "hint: docs/validation.md"),
        (YamlError("no mapping", "gate.yaml:1:1", "use one"), "launch: gate.yaml:1:1: no mapping\n  hint: use one"),
    ],
)
def test_a_faulty_file_of_the_user_is_not_a_bug(
    capsys: pytest.CaptureFixture[str], state: Path, error: Exception, words: str
) -> None:
    code, err = shown(capsys, error)
    assert (code, words in err, state.exists()) == (2, True, False)


def raised(error: Exception) -> Exception:
    try:
        raise error
    except type(error) as caught:
        return caught


def test_an_internal_error_leaves_a_report_with_command_and_traceback(
    capsys: pytest.CaptureFixture[str], state: Path
) -> None:
    code, err = shown(capsys, raised(ValueError("ünïcode")), "check", "p")
    [path] = (state / "reports").iterdir()
    assert (code, str(path) in err, "internal error: ValueError: ünïcode" in err) == (3, True, True)
    text = path.read_text()
    assert "launch check p\n" in text and "test_fault.py" in text and release() in text


@pytest.mark.parametrize("secret", ["--api-key sk-secret-1", "api_key='sk-secret-1'"])
def test_neither_report_nor_terminal_shows_a_secret(
    capsys: pytest.CaptureFixture[str], state: Path, secret: str
) -> None:
    _, err = shown(capsys, raised(ValueError(f"bad {secret}")), *secret.split())
    [path] = (state / "reports").iterdir()
    assert "sk-secret-1" not in path.read_text()
    assert "sk-secret-1" not in err


def test_words_that_are_not_text_can_be_reported(capsys: pytest.CaptureFixture[str], state: Path) -> None:
    """A shell hands bytes to Python as lone surrogates."""
    code, _ = shown(capsys, raised(ValueError("x")), "check", "caf\udce9")
    [path] = (state / "reports").iterdir()
    assert (code, "launch check caf\\udce9" in path.read_text()) == (3, True)


def test_a_report_that_cannot_be_written_is_printed(capsys: pytest.CaptureFixture[str], state: Path) -> None:
    state.write_text("a file where a folder should be")
    code, err = shown(capsys, raised(ValueError("boom")), "check", "p")
    assert code == 3
    assert "internal error: ValueError: boom" in err
    assert "Traceback" in err and "launch check p" in err


def test_a_base_error_is_an_expected_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, LauncherError("it went wrong")) == (1, "launch: it went wrong\n")
