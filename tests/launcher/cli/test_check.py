"""`launch check` without a host: recorded facts set the release, and options that would be ignored are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from launcher.cli.app import LAUNCH, run
from tests.support.gate_repo import FACTS

PROFILE = "model: {path: /models/x}\nflags: {cuda-graph-max-bs: 8}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.yaml").write_text(PROFILE)
    return tmp_path


def recorded(folder: Path, release: str, **packages: str) -> str:
    engine = {**FACTS["engine"], "packages": {**FACTS["engine"]["packages"], "sglang": release, **packages}}
    path = folder / "facts.json"
    path.write_text(json.dumps({**FACTS, "engine": engine}))
    return str(path)


def findings(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> dict[str, dict[str, Any]]:
    run("launch", LAUNCH, ["check", str(folder / "small.yaml"), "--json", *words])
    return {item["id"]: item for item in json.loads(capsys.readouterr().out)["findings"]}


def test_flags_are_spelled_for_the_release_of_the_recorded_facts(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "flag-unknown-to-engine" not in findings(capsys, folder, "--facts", recorded(folder, "0.5.11"))
    assert "flag-unknown-to-engine" not in findings(capsys, folder, "--facts", recorded(folder, "0.5.20"))


def test_a_missing_requirement_of_the_release_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    complete = findings(capsys, folder, "--facts", recorded(folder, "0.5.20"))
    assert "python-dependency-missing" not in complete
    outdated = findings(capsys, folder, "--facts", recorded(folder, "0.5.20", xgrammar="0.1.9"))
    assert "xgrammar==0.2.1 (0.1.9 is)" in outdated["python-dependency-missing"]["message"]


def test_the_engine_option_overrides_the_release_of_the_facts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overridden = findings(capsys, folder, "--facts", recorded(folder, "0.5.20"), "--engine", "0.5.23")
    assert overridden["transformers-version-mismatch"]["message"].startswith("0.5.23 pins")


@pytest.mark.parametrize(
    "words",
    [
        ["--host", "local", "--facts", "FACTS"],
        ["--host", "local", "--engine", "0.5.20"],
        ["--host", "local", "--gpu", "H100"],
        ["--facts", "FACTS", "--gpu", "H100"],
        ["--facts", "FACTS", "--model-config", "."],
    ],
)
def test_options_that_would_be_ignored_are_refused(
    folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [recorded(folder, "0.5.20") if word == "FACTS" else word for word in words]
    assert run("launch", LAUNCH, ["check", str(folder / "small.yaml"), *words]) == 2
    assert words[-2] in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong", [{"host": 3}, {"engine": []}, {"engine": {"packages": [1]}}, {"gpus": {}}, {"gpus": [7]}, {"model": "x"}]
)
def test_an_invalid_facts_file_is_refused_with_the_invalid_key(
    folder: Path, wrong: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "facts.json"
    path.write_text(json.dumps({**FACTS, **wrong}))
    assert run("launch", LAUNCH, ["check", str(folder / "small.yaml"), "--facts", str(path)]) == 2
    assert f"not a facts file: `{next(iter(wrong))}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (["--engine", "9.9.9"], "note: 9.9.9 is not recorded: "),
        ([], "note: unknown engine version: "),
        (["--engine", "0.5.23"], ""),
    ],
)
def test_a_release_that_another_one_stands_in_for_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], note: str
) -> None:
    """Flags are then judged by the tables of that other release."""
    run("launch", LAUNCH, ["check", str(folder / "small.yaml"), "--json", *words])
    shown = capsys.readouterr().err
    assert shown.startswith(note) if note else shown == ""
