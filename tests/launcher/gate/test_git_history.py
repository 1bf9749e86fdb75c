"""Git histories as they occur in CI: merges, shallow clones, detached heads, no base, a base with newer commits."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.gate_fixtures import Judged
from tests.support.gate_repo import IDENTITY, Repo, create

BAD = "  no-such-flag: 1\n"
FAULT = {"flag-unknown-to-engine profiles/chat.yaml:5"}


def clone(repo: Repo, to: Path, *words: str) -> Repo:
    command = ["git", "clone", "-q", *words, f"file://{repo.path}", str(to)]
    subprocess.run(command, check=True, env={**os.environ, **IDENTITY}, capture_output=True)
    return Repo(to)


def with_bad_change(repo: Repo) -> Repo:
    repo.append("profiles/chat.yaml", BAD)
    repo.commit("bad")
    return repo


def test_newer_commits_of_the_base_are_not_part_of_the_change(repo: Repo, gate: Callable[..., Judged]) -> None:
    repo.edit("profiles/batch.yaml", "512", "256")
    repo.commit()
    repo.git("checkout", "-q", "main")
    with_bad_change(repo)
    repo.git("checkout", "-q", "change")
    judged = gate(repo)
    assert (judged.code, judged.affected) == (0, {"batch": "changed"})


def test_a_change_that_merged_the_base_is_judged_without_it(repo: Repo, gate: Callable[..., Judged]) -> None:
    repo.edit("profiles/batch.yaml", "512", "256")
    repo.commit()
    repo.git("checkout", "-q", "main")
    with_bad_change(repo)
    repo.git("checkout", "-q", "change")
    repo.git("merge", "-q", "--no-edit", "main")
    judged = gate(repo)
    assert (judged.code, judged.affected) == (0, {"batch": "changed"})


def test_the_merge_commit_that_ci_checks_out_is_judged(repo: Repo, gate: Callable[..., Judged]) -> None:
    with_bad_change(repo)
    repo.git("checkout", "-q", "main")
    repo.edit("profiles/batch.yaml", "512", "256")
    repo.commit()
    repo.git("checkout", "-q", "--detach")
    repo.git("merge", "-q", "--no-edit", "change")
    judged = gate(repo)
    assert (judged.failing, judged.affected) == (FAULT, {"chat": "changed"})


def test_a_detached_head_is_judged(repo: Repo, gate: Callable[..., Judged]) -> None:
    with_bad_change(repo).git("checkout", "-q", "--detach")
    assert gate(repo).failing == FAULT


def test_after_the_merge_the_base_branch_itself_is_compared_with_its_parent(
    repo: Repo, gate: Callable[..., Judged]
) -> None:
    with_bad_change(repo)
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "--no-edit", "change")
    judged = gate(repo)
    assert judged.failing == FAULT
    assert judged.report["base_note"] == "main itself is checked out: compared with its parent commit"


def test_in_a_shallow_clone_without_the_base_the_error_says_how_to_fetch_it(
    repo: Repo, tmp_path: Path, gate: Callable[..., Judged]
) -> None:
    with_bad_change(repo)
    shallow = clone(repo, tmp_path / "shallow", "--depth", "1", "--branch", "change", "--single-branch")
    judged = gate(shallow, "--base", "origin/main")
    assert judged.code == 2
    assert "base `origin/main`: this clone is shallow" in judged.error
    assert "fetch-depth: 0" in judged.error


def test_in_a_shallow_clone_with_the_base_the_change_is_compared_with_its_tip(
    repo: Repo, tmp_path: Path, gate: Callable[..., Judged]
) -> None:
    with_bad_change(repo)
    shallow = clone(repo, tmp_path / "shallow", "--depth", "1", "--branch", "change", "--single-branch")
    shallow.git("fetch", "-q", "--depth", "1", "origin", "main:refs/remotes/origin/main")
    judged = gate(shallow, "--base", "main")
    assert (judged.failing, judged.affected) == (FAULT, {"chat": "changed"})
    assert "no common ancestor with origin/main" in judged.report["base_note"]


def test_without_any_base_every_profile_is_new(repo: Repo, gate: Callable[..., Judged]) -> None:
    repo.git("branch", "-D", "main")
    judged = gate(repo)
    assert judged.code == 0
    assert judged.affected == dict.fromkeys(("_base/llama", "batch", "chat", "solo"), "new")
    assert judged.report["base_note"] == "this clone has no base branch: every profile is new"


def test_a_base_that_does_not_exist_is_a_usage_error(repo: Repo, gate: Callable[..., Judged]) -> None:
    judged = gate(repo, "--base", "trunk")
    assert (judged.code, "base `trunk`: no such commit or branch in this clone" in judged.error) == (2, True)


def test_a_base_that_looks_like_an_option_is_not_treated_as_one(repo: Repo, gate: Callable[..., Judged]) -> None:
    judged = gate(repo, "--base", "--output=/tmp/stolen")
    assert (judged.code, "no such commit" in judged.error) == (2, True)


def test_the_push_of_a_new_branch_has_no_base(repo: Repo, gate: Callable[..., Judged]) -> None:
    assert set(gate(repo, "--base", "0" * 40).affected.values()) == {"new"}


def test_a_repository_without_a_commit_has_no_base(tmp_path: Path, gate: Callable[..., Judged]) -> None:
    empty = Repo(tmp_path / "empty")
    empty.path.mkdir()
    empty.git("init", "-q")
    empty.write("profiles/a.yaml", "why: First.\nmodel: {path: /models/a}\nflags: {no-such-flag: 1}\n")
    judged = gate(empty)
    assert judged.failing == {"flag-unknown-to-engine profiles/a.yaml:3"}


def test_a_folder_outside_git_is_a_usage_error(tmp_path: Path, gate: Callable[..., Judged]) -> None:
    judged = gate(Repo(tmp_path))
    assert (judged.code, "is not a git repository" in judged.error) == (2, True)


def test_unrelated_histories_are_compared_by_content(repo: Repo, gate: Callable[..., Judged]) -> None:
    with_bad_change(repo)
    tree = repo.git("rev-parse", "HEAD^{tree}")
    other = repo.git("commit-tree", tree, "-m", "no parent")
    repo.git("checkout", "-q", other)
    judged = gate(repo)
    assert (judged.failing, judged.affected) == (FAULT, {"chat": "changed"})


@pytest.mark.parametrize(
    ("variable", "value"), [("GITHUB_BASE_REF", "release"), ("CI_MERGE_REQUEST_DIFF_BASE_SHA", "")]
)
def test_the_base_comes_from_the_variables_of_ci(
    repo: Repo, gate: Callable[..., Judged], monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    repo.git("branch", "-m", "main", "release")
    with_bad_change(repo)
    monkeypatch.setenv(variable, value or repo.git("rev-parse", "release"))
    assert (gate(repo).affected, gate(repo).failing) == ({"chat": "changed"}, FAULT)


def test_names_with_spaces_and_unicode_survive(tmp_path: Path, gate: Callable[..., Judged]) -> None:
    repo = create(tmp_path / "repo", {"profiles/zwei drei ü.yaml": "why: a\nmodel: {path: /m}\nflags: {}\n"})
    repo.write("profiles/zwei drei ü.yaml", "why: a\nmodel: {path: /m}\nflags:\n  no-such-flag: 1\n")
    repo.commit()
    assert gate(repo).failing == {"flag-unknown-to-engine profiles/zwei drei ü.yaml:4"}


def test_links_of_the_base_are_not_followed(repo: Repo, gate: Callable[..., Judged], tmp_path: Path) -> None:
    repo.git("checkout", "-q", "main")
    (repo.path / "profiles/link.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    repo.commit("a link that leads out")
    repo.git("checkout", "-q", "-B", "change")
    (repo.path / "profiles/link.yaml").unlink()
    repo.commit()
    assert gate(repo).code == 0
