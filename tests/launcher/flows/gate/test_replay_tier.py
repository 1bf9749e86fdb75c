"""Recorded runs judged again: an unchanged verdict passes, a changed one fails, in the gate and on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from launcher.cli.app import LAUNCH
from launcher.cli.app import run as command
from launcher.flows.gate.replay_tier import replay
from launcher.gate.evidence_bundle import write
from tests.support.gate_fixtures import Judged
from tests.support.gate_recorded import CAUSE, crashed, validated
from tests.support.gate_recorded import LAUNCH as LAUNCHED
from tests.support.gate_repo import Repo

NAME = "20261129-120000-chat-abcd"


def with_evidence(repo: Repo, policy: str = "replay: [evidence/*.tar.gz]\n", **diagnosis: object) -> Repo:
    repo.git("checkout", "-q", "main")
    run = crashed(repo.path.parent / NAME)
    if diagnosis:
        run.write("diagnosis", diagnosis)
    write(run, repo.path / "evidence/chat.tar.gz", {})
    repo.append("gate.yaml", policy)
    repo.commit("evidence")
    repo.git("checkout", "-q", "-B", "change")
    return repo


def test_an_unchanged_verdict_does_not_flip(tmp_path: Path) -> None:
    replayed = replay(crashed(tmp_path / NAME).folder)
    assert (replayed.flipped, replayed.now["cause"], replayed.now["refused"]) == ((), CAUSE, False)


def test_a_replay_does_not_change_the_run(tmp_path: Path) -> None:
    folder = crashed(tmp_path / NAME).folder
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    replay(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_cause_that_differs_from_the_recorded_one_is_a_flip(tmp_path: Path) -> None:
    run = crashed(tmp_path / NAME)
    run.write("diagnosis", {"cause": "cuda-out-of-memory", "healthy": False, "ledger": []})
    assert replay(run.folder).flipped == ("cause",)


def test_a_launch_that_rules_refuse_today_is_a_flip(tmp_path: Path) -> None:
    run = crashed(tmp_path / NAME)
    run.write("launch", {**LAUNCHED, "flags": {**LAUNCHED["flags"], "no-such-flag": "1"}})
    assert replay(run.folder).flipped == ("refused",)


def test_an_acceptance_that_has_expired_since_the_run_flips_nothing(tmp_path: Path) -> None:
    run = crashed(tmp_path / NAME)
    run.write("launch", {**LAUNCHED, "flags": {**LAUNCHED["flags"], "no-such-flag": "1"}})
    accepted = {"id": "flag-unknown-to-engine", "reason": "r", "where": "-", "until": "2026-01-31", "owner": ""}
    run.write("profile", {"accept": [accepted], "expect": {}})
    assert replay(run.folder).flipped == ()


def test_a_refusal_of_the_engine_itself_cannot_be_judged_again_and_flips_nothing(tmp_path: Path) -> None:
    run = crashed(tmp_path / NAME)
    refusal = {"id": "speculative-triple-incomplete", "severity": "error", "subject": "",
               "message": "AssertionError", "origin": "engine"}  # fmt: skip
    run.write("findings", [refusal])
    assert replay(run.folder).flipped == ()


def test_a_verdict_that_follows_from_the_recorded_probes_is_checked(tmp_path: Path) -> None:
    assert replay(validated(tmp_path / "a").folder).flipped == ()
    assert replay(validated(tmp_path / "b", outcome="pass", level="correct").folder).flipped == ("outcome", "level")


def test_an_expectation_of_the_policy_replaces_the_recorded_verdict(tmp_path: Path) -> None:
    assert replay(crashed(tmp_path / NAME).folder, {"cause": "something-else"}).flipped == ("cause",)


def test_the_replay_tier_judges_the_runs_of_an_affected_profile(repo: Repo, gate: Callable[..., Judged]) -> None:
    with_evidence(repo).edit("profiles/chat.yaml", "64", "32")
    judged = gate(repo, "--tier", "replay")
    assert judged.code == 0
    assert [(item["path"], item["flipped"]) for item in judged.report["replayed"]] == [("evidence/chat.tar.gz", [])]


def test_runs_of_other_profiles_are_not_replayed(repo: Repo, gate: Callable[..., Judged]) -> None:
    with_evidence(repo).edit("profiles/batch.yaml", "512", "256")
    assert gate(repo, "--tier", "replay").report["replayed"] == []


def test_a_flipped_verdict_fails_on_the_line_that_names_the_run(repo: Repo, gate: Callable[..., Judged]) -> None:
    with_evidence(repo, cause="cuda-out-of-memory", healthy=False, ledger=[])
    repo.edit("profiles/chat.yaml", "64", "32")
    judged = gate(repo, "--tier", "replay")
    assert (judged.code, judged.failing) == (1, {"verdict-flipped gate.yaml:16"})
    assert judged.messages("verdict-flipped") == f"{NAME}: cause was cuda-out-of-memory, is now {CAUSE}"


def test_the_static_tier_does_not_replay_recorded_runs(repo: Repo, gate: Callable[..., Judged]) -> None:
    with_evidence(repo, cause="cuda-out-of-memory", healthy=False, ledger=[])
    repo.edit("profiles/chat.yaml", "64", "32")
    assert gate(repo).code == 0


def test_a_change_that_affects_all_profiles_replays_every_recorded_run(repo: Repo, gate: Callable[..., Judged]) -> None:
    policy = "replay: [evidence/*.tar.gz]\naffects-all: [requirements.txt]\n"
    with_evidence(repo, policy, cause="cuda-out-of-memory", healthy=False, ledger=[])
    repo.write("requirements.txt", "sglang-launcher==9\n")
    judged = gate(repo, "--tier", "replay")
    assert set(judged.affected) == {"_base/llama", "batch", "chat", "solo"}
    assert judged.failing == {"verdict-flipped gate.yaml:16"}


def test_a_recorded_run_that_cannot_be_read_fails(repo: Repo, gate: Callable[..., Judged]) -> None:
    repo.append("gate.yaml", "replay: [evidence/none.tar.gz]\n")
    judged = gate(repo, "--tier", "replay")
    assert judged.failing == {"recorded-run-unreadable gate.yaml:16"}


def test_launch_replay_accepts_folders_and_bundles(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = crashed(tmp_path / NAME)
    bundle = write(run, tmp_path / "a.tar.gz", {})
    assert command("launch", LAUNCH, ["replay", str(run.folder), str(bundle), "--json"]) == 0
    assert [item["run"] for item in json.loads(capfd.readouterr().out)] == [NAME, NAME]
    run.write("diagnosis", {"cause": None, "healthy": True, "ledger": []})
    assert command("launch", LAUNCH, ["replay", str(run.folder)]) == 1
    assert f"cause    FLIPPED  None → {CAUSE}" in capfd.readouterr().out


def test_launch_replay_of_a_missing_run_is_a_usage_error(tmp_path: Path) -> None:
    assert command("launch", LAUNCH, ["replay", str(tmp_path / "none")]) == 2
    assert command("launch", LAUNCH, ["replay", str(tmp_path)]) == 2
