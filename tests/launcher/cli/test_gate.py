"""`launch gate`: exit code, terminal report and files of one change; what it writes for GitHub Actions."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.command_line import Cli
from tests.support.gate_repo import Repo


def breaking(repo: Repo) -> None:
    repo.edit("profiles/chat.yaml", "max-running-requests: 64", "max-runing-requests: 64")


def gate(cli: Cli, repo: Repo, *words: str) -> tuple[int, str, str]:
    return cli("gate", "--repo", str(repo.path), *words)


def test_no_change_passes_and_the_verdict_is_the_last_line(cli: Cli, repo: Repo) -> None:
    code, out, err = gate(cli, repo)
    assert (code, err) == (0, "")
    assert out.startswith("base      ")
    assert out.splitlines()[-1] == "verdict   pass: no profile is affected"


def test_a_blocking_finding_is_exit_code_1_in_every_form(cli: Cli, repo: Repo) -> None:
    breaking(repo)
    code, out, _ = gate(cli, repo)
    assert (code, "FAIL      profiles/chat.yaml:4:3: flag-unknown-to-engine" in out) == (1, True)
    code, out, _ = gate(cli, repo, "--json")
    assert (code, json.loads(out)["verdict"]) == (1, "fail")


def test_a_gate_that_cannot_decide_is_exit_code_5(cli: Cli, repo: Repo) -> None:
    repo.edit("profiles/solo.yaml", "'>=0.5.20'", "'>=9'")
    code, out, _ = gate(cli, repo)
    assert (code, out.splitlines()[-1].startswith("verdict   inconclusive")) == (5, True)


def test_every_report_is_written_for_a_failing_change(cli: Cli, repo: Repo) -> None:
    breaking(repo)
    places = {name: f"out/{name}/report" for name in ("junit", "sarif", "codequality", "markdown")}
    words = [word for name, place in places.items() for word in (f"--{name}", place)]
    assert gate(cli, repo, *words)[0] == 1
    texts = {name: Path(place).read_text() for name, place in places.items()}
    assert all("flag-unknown-to-engine" in text for text in texts.values())
    assert ElementTree.fromstring(texts["junit"]).tag == "testsuites"
    assert json.loads(texts["sarif"])["version"] == "2.1.0"
    assert isinstance(json.loads(texts["codequality"]), list)
    assert texts["markdown"].lstrip().startswith(("#", "<!--"))


@pytest.mark.parametrize("option", ["--junit", "--sarif", "--codequality", "--markdown"])
def test_a_report_that_cannot_be_written_is_refused_before_the_gate(cli: Cli, repo: Repo, option: str) -> None:
    (repo.path / "gate.yaml").unlink()
    code, out, err = gate(cli, repo, option, str(repo.path / "README.md" / "report"))
    assert (code, out, option in err) == (2, "", True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tier", "statc"), "unknown tier `statc`"),
        (("--base", "no-such-branch"), "no-such-branch"),
        (("--tier", "host"), "the host tier needs a host"),
    ],
)
def test_a_faulty_command_line_is_refused_without_a_verdict(
    cli: Cli, repo: Repo, words: tuple[str, ...], message: str
) -> None:
    code, out, err = gate(cli, repo, *words)
    assert (code, out, message in err) == (2, "", True), err


def test_a_folder_that_is_not_a_repository_is_refused(cli: Cli) -> None:
    code, out, err = cli("gate")
    assert (code, out, err.startswith("launch: ")) == (2, "", True)


def test_only_the_named_profiles_are_judged(cli: Cli, repo: Repo) -> None:
    breaking(repo)
    repo.edit("profiles/batch.yaml", "max-running-requests: 512", "max-running-requests: 256")
    code, out, _ = gate(cli, repo, "--profile", "bat*", "--json")
    assert (code, [item["name"] for item in json.loads(out)["affected"]]) == (0, ["batch"])


def test_all_profiles_are_judged_without_a_change(cli: Cli, repo: Repo) -> None:
    names = {item["name"] for item in json.loads(gate(cli, repo, "--all", "--json")[1])["affected"]}
    assert {"chat", "batch", "solo"} <= names


def test_annotations_leave_standard_output_to_the_document(
    cli: Cli, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    Path("summary.md").write_text("before\n")
    breaking(repo)
    _, out, err = gate(cli, repo, "--json")
    assert json.loads(out)["verdict"] == "fail"
    assert "::error file=profiles/chat.yaml,line=4" in err
    summary = Path("summary.md").read_text()
    assert summary.startswith("before\n") and "flag-unknown-to-engine" in summary


def test_nothing_is_annotated_outside_of_ci(cli: Cli, repo: Repo) -> None:
    breaking(repo)
    assert "::" not in gate(cli, repo)[2]


@pytest.mark.parametrize(("ci", "annotated"), [("true", True), ("", False)])
def test_a_policy_that_cannot_be_read_is_annotated_on_its_line(
    cli: Cli, repo: Repo, monkeypatch: pytest.MonkeyPatch, ci: str, annotated: bool
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", ci)
    repo.append("gate.yaml", "no-such-key: 1\n")
    line = repo.read("gate.yaml").count("\n")
    code, out, err = gate(cli, repo)
    assert (code, out, "no-such-key" in err) == (2, "", True)
    assert (f"gate.yaml,line={line}," in err) is annotated
