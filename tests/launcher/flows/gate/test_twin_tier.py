"""The twin's findings on affected profiles count like those of rules, for each fetched release and recorded host."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from checks.vocabulary import Finding, Origin, Severity
from launcher.flows.gate import twin_tier as module
from launcher.flows.launch.twin_check import Asked
from tests.support.gate_fixtures import Judged
from tests.support.gate_repo import Repo

RECORDED = {"asked": {"model": "/models/llama"}, "model": {"path": "/models/llama", "config": {"model_type": "llama"}}}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Asked]]:
    """A twin of 0.5.20 and 0.5.21 that refuses more than 512 running requests; what it was asked."""
    seen: list[tuple[str, Asked]] = []

    def check(_: object, release: str, launches: Sequence[Asked]) -> dict[str, tuple[Finding, ...]]:
        seen.extend((release, item) for item in launches)
        return {item.name: refusal(item) for item in launches}

    def refusal(item: Asked) -> tuple[Finding, ...]:
        wanted = int(str(item.flags["max-running-requests"]))
        text = f"the engine refuses these arguments: {wanted} are too many"
        found = Finding(
            id="engine-refuses-arguments",
            severity=Severity.ERROR,
            origin=Origin.ENGINE,
            message=text,
            subject="flag.max-running-requests",
        )
        return (found,) if wanted > 512 else ()

    monkeypatch.setattr(module, "twin_check", check)
    monkeypatch.setattr(module, "available", lambda release: release in ("0.5.20", "0.5.21"))
    return seen


def recorded(repo: Repo) -> Repo:
    repo.git("checkout", "-q", "main")
    repo.facts(**RECORDED)
    repo.commit("facts with a model")
    repo.git("checkout", "-q", "-B", "change")
    return repo


def test_a_refusal_fails_on_the_line_of_its_flag(
    repo: Repo, gate: Callable[..., Judged], asked: list[tuple[str, Asked]]
) -> None:
    recorded(repo).edit("profiles/chat.yaml", "max-running-requests: 64", "max-running-requests: 600")
    judged = gate(repo, "--tier", "twin")
    assert judged.code == 1
    assert judged.failing == {"engine-refuses-arguments profiles/chat.yaml:4"}
    assert "600 are too many" in judged.messages("engine-refuses-arguments")
    assert {(release, item.name) for release, item in asked} == {
        (release, f"{side} chat:gpu-box ({release}, twin)")
        for release in ("0.5.20", "0.5.21")
        for side in ("new", "old")
    }
    assert asked[0][1].raw is not None
    assert asked[0][1].raw["model"] == RECORDED["model"]


def test_a_refusal_that_the_base_has_too_is_known(
    repo: Repo, gate: Callable[..., Judged], asked: list[tuple[str, Asked]]
) -> None:
    recorded(repo)
    repo.git("checkout", "-q", "main")
    repo.edit("profiles/chat.yaml", "max-running-requests: 64", "max-running-requests: 600")
    repo.commit("too many")
    repo.git("checkout", "-q", "-B", "change")
    repo.append("profiles/chat.yaml", "  log-level: warning\n")
    judged = gate(repo, "--tier", "twin")
    assert judged.code == 0
    assert judged.of("known") >= {"engine-refuses-arguments profiles/chat.yaml:4"}
    assert asked


def test_releases_that_were_not_fetched_are_noted_and_other_tiers_ask_nothing(
    repo: Repo, gate: Callable[..., Judged], asked: list[tuple[str, Asked]]
) -> None:
    recorded(repo).edit("profiles/chat.yaml", "max-running-requests: 64", "max-running-requests: 65")
    judged = gate(repo, "--tier", "twin")
    assert judged.code == 0
    assert judged.of("note") >= {"twin-not-fetched gate.yaml:1"}
    assert "0.5.15" in judged.messages("twin-not-fetched")
    assert "0.5.20" not in judged.messages("twin-not-fetched")
    asked.clear()
    gate(repo)
    gate(repo, "--tier", "replay")
    assert asked == []


def test_a_host_without_recorded_facts_is_not_asked_about(
    repo: Repo, gate: Callable[..., Judged], asked: list[tuple[str, Asked]]
) -> None:
    recorded(repo).edit("profiles/chat.yaml", "max-running-requests: 64", "max-running-requests: 600")
    (repo.path / "facts/gpu-box.json").unlink()
    assert gate(repo, "--tier", "twin").failing == set()
    assert [item for _, item in asked if item.name.startswith("new")] == []
