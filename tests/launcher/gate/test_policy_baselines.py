"""Baselines that the policy names: they exist, can be read, and belong to the judged profile."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from launcher.flows.validate.stored_baselines import save
from launcher.gate.evidence_bundle import write
from tests.support.gate_fixtures import Judged
from tests.support.gate_recorded import validated
from tests.support.gate_repo import Repo


def changed(repo: Repo) -> Repo:
    repo.edit("profiles/chat.yaml", "64", "32")
    return repo


def test_a_missing_baseline_fails_on_the_line_that_names_it(repo: Repo, gate: Callable[..., Judged]) -> None:
    (changed(repo).path / "evidence/chat.json").unlink()
    judged = gate(repo)
    assert (judged.code, judged.failing) == (1, {"baseline-unreadable gate.yaml:11"})


def test_a_file_without_a_validation_is_not_a_baseline(repo: Repo, gate: Callable[..., Judged]) -> None:
    changed(repo).write("evidence/chat.json", "[1, 2]")
    judged = gate(repo)
    assert judged.failing == {"baseline-unreadable gate.yaml:11"}
    assert "evidence/chat.json: no validation in this baseline" in judged.messages("baseline-unreadable")


def test_a_bundle_and_a_saved_baseline_are_accepted(repo: Repo, gate: Callable[..., Judged], tmp_path: Path) -> None:
    run = validated(tmp_path / "20261129-120000-chat-abcd")
    write(run, repo.path / "evidence/chat.tar.gz", {})
    save(run, "chat", repo.path / "baselines", datetime(2026, 11, 29, tzinfo=UTC))
    for name in ("evidence/chat.tar.gz", "baselines/chat.json"):
        repo.git("checkout", "-q", "--", ".")
        changed(repo).edit("gate.yaml", "evidence/chat.json", name)
        assert gate(repo).failing == set(), name


def test_a_baseline_of_other_flags_is_a_note_and_fails_if_the_policy_says_so(
    repo: Repo, gate: Callable[..., Judged]
) -> None:
    stored = {"digest": "0" * 12, "validation": {"verdicts": [], "samples": {}, "engine": "0.5.20"}}
    changed(repo).write("evidence/chat.json", json.dumps(stored))
    judged = gate(repo)
    assert (judged.code, judged.of("note")) == (0, {"baseline-stale gate.yaml:11"})
    repo.edit("gate.yaml", "fail: [error]", "fail: [error, baseline-stale]")
    assert gate(repo).failing == {"baseline-stale gate.yaml:11"}
