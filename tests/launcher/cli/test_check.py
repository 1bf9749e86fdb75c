"""`launch check` without a host: recorded facts set the release, and options that would be ignored are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checks.vocabulary import Finding, Remedy, Severity
from launcher.cli.app import LAUNCH, run
from launcher.cli.check import Checked, parse_gpu, show
from launcher.errors import UsageError
from launcher.profile.file import Profile, Setting
from tests.support.command_line import Cli
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


@pytest.mark.parametrize(
    ("text", "gpu"),
    [
        ("H100", {"name": "H100", "count": 1}),
        ("8x RTX PRO 6000", {"name": "RTX PRO 6000", "count": 8}),
        (" 2 × H200 ", {"name": "H200", "count": 2}),
        ("4*B200", {"name": "B200", "count": 4}),
        ("3090", {"name": "3090", "count": 1}),
    ],
)
def test_gpus_are_read_as_people_write_them(text: str, gpu: dict[str, Any]) -> None:
    assert parse_gpu(text, Profile(name="p", path="")) == gpu


@pytest.mark.parametrize("text", [" ", "\t\n"])
def test_gpus_without_a_name_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="unknown GPU"):
        parse_gpu(text, Profile(name="p", path=""))


def test_the_gpus_of_the_profile_are_the_default() -> None:
    hardware = {"gpu": Setting(value="H100", where=""), "count": Setting(value="2", where="")}
    assert parse_gpu("", Profile(name="p", path="", hardware=hardware))["name"] == "H100"


@pytest.mark.parametrize(("severity", "code"), [("error", 2), ("warning", 0), ("info", 0)])
def test_only_an_error_refuses_a_launch(severity: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    remedy = Remedy(set={"tp": "2"})
    finding = Finding(
        id="odd", severity=Severity(severity), message="[m]", why="ü", subject="flag.tp", remedies=(remedy,)
    )
    assert show(Checked(findings=[finding]), None, as_json=True) == code
    [document] = json.loads(capsys.readouterr().out)["findings"]
    assert (document["id"], document["severity"], document["message"]) == ("odd", severity, "[m]")
    assert document["remedies"][0]["set"] == {"tp": "2"}
    assert show(Checked(findings=[finding]), None, as_json=False) == code
    assert "odd: [m]" in capsys.readouterr().out


def test_no_finding_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(Checked(findings=[]), None, as_json=False) == 0
    assert capsys.readouterr().out == "no findings\n"


@pytest.mark.parametrize("text", [None, "{", "[1]", '{"flags": 3}', "\udcff"])
def test_a_case_that_cannot_be_read_is_refused_with_its_name(cli: Cli, text: str | None) -> None:
    if text is not None:
        (cli.folder / "case.json").write_text(text, errors="surrogateescape")
    code, out, err = cli("check", "--case", "case.json")
    assert (code, out, "`case.json`" in err) == (2, "", True), err


def test_a_case_is_checked_without_a_profile(cli: Cli) -> None:
    (cli.folder / "case.json").write_text(json.dumps({"engine": "0.5.23", "flags": {"no-such-flag": "1"}}))
    code, out, _ = cli("check", "--case", "case.json", "--json")
    assert (code, "flag-unknown-to-engine" in {item["id"] for item in json.loads(out)["findings"]}) == (2, True)


def test_a_profile_must_be_named(cli: Cli) -> None:
    code, out, err = cli("check")
    assert (code, out, "launch check PROFILE --host HOST" in err) == (2, "", True)


def test_a_live_host_is_checked_and_nothing_is_started(engine: Cli) -> None:
    code, out, _ = engine("check", "fake", "--host", "local", "--fast", "--json")
    assert (code, "findings" in json.loads(out)) == (0, True)
    assert not (engine.folder / "work" / "runs").exists()
    assert not (engine.folder / "state").exists()


@pytest.mark.slow
def test_the_engine_itself_is_asked_unless_it_shall_be_fast(engine: Cli) -> None:
    assert "the engine's own argument checks" in engine("check", "fake", "--host", "local")[2]
    assert engine("check", "fake", "--host", "local", "--fast")[2] == ""


def test_a_launch_on_other_gpus_is_checked_offline(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--engine", "0.5.10", "--set", "moe-runner-backend=flashinfer_trtllm")
    blackwell = findings(capsys, folder, *words, "--gpu", "2x RTX PRO 6000")
    hopper = findings(capsys, folder, *words, "--gpu", "2x H100")
    assert "trtllm-moe-on-sm120" in blackwell and "trtllm-moe-on-sm120" not in hopper


def test_a_host_without_an_engine_is_a_finding_and_leaves_nothing_to_trace(engine: Cli) -> None:
    (engine.folder / "hosts.yaml").write_text(json.dumps({"hosts": {"local": {"python": "/no/such/python3"}}}))
    words = ("check", "fake", "--host", "local", "--fast")
    code, out, _ = engine(*words)
    assert (code, out.startswith("error  host-cannot-be-asked: ")) == (2, True)
    assert "not judged" in engine(*words, "--trace", "glibc-too-old")[1]
    document = json.loads(engine(*words, "--trace", "glibc-too-old", "--json")[1])
    assert (document["trace"], [item["id"] for item in document["findings"]]) == (None, ["host-cannot-be-asked"])
