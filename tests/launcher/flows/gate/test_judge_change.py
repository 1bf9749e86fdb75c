"""Realistic pull requests, each with its verdict, its affected profiles, the failing lines, and the exit code."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import Struct, field

from tests.support.gate_fixtures import Judged
from tests.support.gate_repo import BASE, CHAT, POLICY, Repo

LLAMA = {"_base/llama": "changed", "batch": "changed", "chat": "changed"}
HALF_A_REQUEST = "flags:\n  max-running-requests: 64\n"


class Scenario(Struct, frozen=True, kw_only=True):
    """One pull request, and what the gate must report on it."""

    change: Callable[[Repo], None]
    code: int = 0
    affected: dict[str, str] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)  # accepted, known


def edited(name: str, old: str, new: str) -> Callable[[Repo], None]:
    return lambda repo: repo.edit(name, old, new)


def added(name: str, text: str) -> Callable[[Repo], None]:
    return lambda repo: repo.append(name, text)


def written(name: str, text: str | bytes) -> Callable[[Repo], None]:
    return lambda repo: repo.write(name, text)


def several(*changes: Callable[[Repo], None]) -> Callable[[Repo], None]:
    def apply(repo: Repo) -> None:
        for change in changes:
            change(repo)

    return apply


def removed(name: str) -> Callable[[Repo], None]:
    return lambda repo: (repo.path / name).unlink()


def moved(old: str, new: str) -> Callable[[Repo], None]:
    def apply(repo: Repo) -> None:
        repo.git("mv", old, new)

    return apply


def accepts(rule: str, **keys: str) -> str:
    lines = "".join(f"    {name}: {value}\n" for name, value in keys.items())
    return f"accept:\n  - id: {rule}\n    reason: known\n{lines}"


UNKNOWN = "  no-such-flag: 1\n"
RETIRING = "  disable-fast-image-processor: true\n"

SCENARIOS: dict[str, Scenario] = {
    "a flag that no release has": Scenario(
        change=added("profiles/chat.yaml", UNKNOWN), code=1, affected={"chat": "changed"},
        failing={"flag-unknown-to-engine profiles/chat.yaml:5"},
    ),
    "a flag under its new name": Scenario(
        change=several(added("profiles/solo.yaml", "  cuda-graph-max-bs: 8\n"), lambda repo: repo.commit(),
                       edited("profiles/solo.yaml", "cuda-graph-max-bs", "cuda-graph-max-bs-decode")),
        affected={"solo": "changed"},
    ),
    "the parent edited": Scenario(
        change=edited("profiles/_base/llama.yaml", "tp-size: 2", "tp-size: 1"), affected=LLAMA,
    ),
    "the parent edited badly": Scenario(
        change=added("profiles/_base/llama.yaml", UNKNOWN), code=1, affected=LLAMA,
        failing={"flag-unknown-to-engine profiles/_base/llama.yaml:10"},
    ),
    "the parent edited where one child overrides it": Scenario(
        change=edited("profiles/_base/llama.yaml", "schedule-policy: lpm", "schedule-policy: dfs-weight"),
        affected={"_base/llama": "changed", "chat": "changed"},
    ),
    "the parent edited to a value that the engine refuses": Scenario(
        change=edited("profiles/_base/llama.yaml", "schedule-policy: lpm", "schedule-policy: fastest"), code=1,
        affected={"_base/llama": "changed", "chat": "changed"},
        failing={"flag-value-not-a-choice profiles/_base/llama.yaml:9"},
    ),
    "an engine bump in hosts.yaml": Scenario(
        change=edited("hosts.yaml", "0.5.20", "0.5.21"), affected={"chat": "inputs", "batch": "inputs"},
    ),
    "an engine bump that leaves the range": Scenario(
        change=edited("hosts.yaml", "0.5.20", "0.5.22"), code=1, affected={"chat": "inputs", "batch": "inputs"},
        failing={"engine-outside-profile-range profiles/chat.yaml:1",
                 "engine-outside-profile-range profiles/batch.yaml:1"},
    ),
    "only comments and order changed": Scenario(
        change=written("profiles/chat.yaml", "# a comment\nextends: _base/llama\n\nwhy: Says it better.\n"
                                             "flags: {'max-running-requests': 64}\n"),
    ),
    "a deleted profile that no other extends": Scenario(
        change=removed("profiles/solo.yaml"), affected={"solo": "deleted"},
    ),
    "a deleted profile that is still extended": Scenario(
        change=removed("profiles/_base/llama.yaml"), code=1,
        affected={"_base/llama": "deleted", "chat": "changed", "batch": "changed"},
        failing={"file-unreadable profiles/chat.yaml:2", "file-unreadable profiles/batch.yaml:2"},
    ),
    "a deleted profile that the policy names": Scenario(
        change=removed("profiles/chat.yaml"), code=1, affected={"chat": "deleted"},
        failing={"gate-names-unknown-profile gate.yaml:11"},
    ),
    "a new profile without a baseline": Scenario(
        change=written("profiles/new.yaml", CHAT), code=1, affected={"new": "new"},
        failing={"baseline-missing profiles/new.yaml:1"},
    ),
    "a new profile that needs no baseline": Scenario(
        change=written("profiles/other.yaml", CHAT), affected={"other": "new"},
    ),
    "a new profile without a reason": Scenario(
        change=written("profiles/other.yaml", "extends: _base/llama\n"), code=1, affected={"other": "new"},
        failing={"why-missing profiles/other.yaml:1"},
    ),
    "a finding accepted in time": Scenario(
        change=added("profiles/chat.yaml", UNKNOWN + accepts("flag-unknown-to-engine", until="2099-01-01")),
        affected={"chat": "changed"}, others={"flag-unknown-to-engine profiles/chat.yaml:5"},
    ),
    "an acceptance that has expired": Scenario(
        change=added("profiles/chat.yaml", UNKNOWN + accepts("flag-unknown-to-engine", until="2020-01-01")), code=1,
        affected={"chat": "changed"}, failing={"flag-unknown-to-engine profiles/chat.yaml:7"},
    ),
    "an acceptance without the date that the policy requires": Scenario(
        change=added("profiles/chat.yaml", UNKNOWN + accepts("flag-unknown-to-engine")), code=1,
        affected={"chat": "changed"}, failing={"flag-unknown-to-engine profiles/chat.yaml:7"},
    ),
    "a finding that needs an owner and has none": Scenario(
        change=added("profiles/solo.yaml", RETIRING + accepts("flag-deprecated", until="2099-01-01")),
        code=1, affected={"solo": "changed"}, failing={"flag-deprecated profiles/solo.yaml:8"},
    ),
    "a finding that needs an owner and has one": Scenario(
        change=added("profiles/solo.yaml",
                     RETIRING + accepts("flag-deprecated", until="2099-01-01", owner="ops")),
        affected={"solo": "changed"}, others={"flag-deprecated profiles/solo.yaml:6"},
    ),
    "a finding that must not be accepted": Scenario(
        change=added("profiles/chat.yaml", "  tensor-parallel-size: 2\n"
                     + accepts("flag-given-twice", until="2099-01-01", owner="ops")),
        code=1, affected={"chat": "changed"}, failing={"flag-given-twice profiles/chat.yaml:7"},
    ),
    "a forbidden flag": Scenario(
        change=added("profiles/chat.yaml", "  disable-radix-cache: true\n"), code=1, affected={"chat": "changed"},
        failing={"forbidden-flag profiles/chat.yaml:5"},
    ),
    "a forbidden flag where it is allowed": Scenario(
        change=added("profiles/batch.yaml", "  disable-radix-cache: true\n"), affected={"batch": "changed"},
    ),
    "a secret under its own name": Scenario(
        change=added("profiles/chat.yaml", "  api-key: very-secret-value\n"), code=1, affected={"chat": "changed"},
        failing={"file-unreadable profiles/chat.yaml:5"},
    ),
    "a secret under another name": Scenario(
        change=added("profiles/chat.yaml", "env:\n  GREETING: hf_" + "a1B2" * 8 + "\n"), code=1,
        affected={"chat": "changed"}, failing={"secret-in-profile profiles/chat.yaml:6"},
    ),
    "a profile that is not YAML": Scenario(
        change=added("profiles/chat.yaml", "env: {A: [}\n"), code=1, affected={"chat": "changed"},
        failing={"file-unreadable profiles/chat.yaml:5"},
    ),
    "an unknown key": Scenario(
        change=added("profiles/chat.yaml", "flgs: {}\n"), code=1, affected={"chat": "changed"},
        failing={"file-unreadable profiles/chat.yaml:5"},
    ),
    "a cycle of extends": Scenario(
        change=added("profiles/_base/llama.yaml", "extends: chat\n"), code=1, affected=LLAMA,
        failing={"file-unreadable profiles/chat.yaml:1", "file-unreadable profiles/_base/llama.yaml:1"},
    ),
    "binary junk named like a profile": Scenario(
        change=written("profiles/junk.yaml", bytes(range(256)) * 8), code=1, affected={"junk": "changed"},
        failing={"file-unreadable profiles/junk.yaml:1"},
    ),
    "binary junk elsewhere": Scenario(change=written("logo.png", bytes(range(256)) * 8)),
    "only a file that is not a profile": Scenario(change=added("README.md", "More.\n")),
    "two profiles, one of them bad": Scenario(
        change=several(edited("profiles/batch.yaml", "512", "256"), added("profiles/solo.yaml", UNKNOWN)), code=1,
        affected={"batch": "changed", "solo": "changed"}, failing={"flag-unknown-to-engine profiles/solo.yaml:6"},
    ),
    "a profile moved": Scenario(
        change=moved("profiles/solo.yaml", "profiles/small.yaml"), affected={"small": "moved"},
    ),
    "a moved profile that the policy names": Scenario(
        change=moved("profiles/chat.yaml", "profiles/talk.yaml"), code=1, affected={"talk": "moved"},
        failing={"gate-names-unknown-profile gate.yaml:11"},
    ),
    "recorded facts with fewer GPUs": Scenario(
        change=lambda repo: repo.facts(gpus=[]), affected={"chat": "inputs", "batch": "inputs"},
    ),
    "recorded facts of another moment only": Scenario(change=lambda repo: repo.facts(notes=["recorded again"])),
    "recorded facts that are not JSON": Scenario(
        change=written("facts/gpu-box.json", "{"), code=1, failing={"file-unreadable facts/gpu-box.json:1"},
    ),
    "hosts.yaml that cannot be read": Scenario(
        change=added("hosts.yaml", "host: {}\n"), code=1, failing={"file-unreadable hosts.yaml:5"},
    ),
    "the policy made stricter": Scenario(
        change=edited("gate.yaml", "why: ['*']", "why: ['*']\n  hardware: ['*']"),
        affected={"_base/llama": "inputs", "chat": "inputs", "batch": "inputs", "solo": "inputs"},
        others={"hardware-missing profiles/solo.yaml:1"},
    ),
    "the policy made stricter, old faults included": Scenario(
        change=several(edited("gate.yaml", "why: ['*']", "why: ['*']\n  hardware: ['*']"),
                       edited("gate.yaml", "  never:", "  old: fail\n  never:")),
        code=1, affected={"_base/llama": "inputs", "chat": "inputs", "batch": "inputs", "solo": "inputs"},
        failing={"hardware-missing profiles/solo.yaml:1"},
    ),
    "only comments of the policy changed": Scenario(change=written("gate.yaml", f"# ours\n{POLICY}")),
    "the engine range widened into a release that refuses": Scenario(
        change=several(added("profiles/solo.yaml", "  bf16-gemm-backend: auto\n"),
                       edited("profiles/solo.yaml", "'>=0.5.20'", "'>=0.5.10'")),
        code=1, affected={"solo": "changed"}, failing={"flag-unknown-to-engine profiles/solo.yaml:6"},
    ),
    "an engine range without a known release": Scenario(
        change=edited("profiles/solo.yaml", "'>=0.5.20'", "'>=9'"), code=5, affected={"solo": "changed"},
    ),
    "a flag removed that no parent sets": Scenario(
        change=added("profiles/chat.yaml", "  page-size: null\n"), code=1, affected={"chat": "changed"},
        failing={"file-unreadable profiles/chat.yaml:5"},
    ),
    "a duplicate key": Scenario(
        change=added("profiles/chat.yaml", HALF_A_REQUEST), code=1, affected={"chat": "changed"},
        failing={"file-unreadable profiles/chat.yaml:5"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_pull_request(name: str, repo: Repo, gate: Callable[..., Judged]) -> None:
    scenario = SCENARIOS[name]
    scenario.change(repo)
    repo.commit()
    judged = gate(repo)
    assert judged.failing == scenario.failing
    assert judged.affected == scenario.affected
    assert judged.of("accepted", "known") == scenario.others
    assert (judged.code, judged.report["verdict"]) == (
        scenario.code, {0: "pass", 1: "fail", 5: "inconclusive"}[scenario.code],
    )  # fmt: skip


def test_there_are_at_least_25_scenarios() -> None:
    assert len(SCENARIOS) >= 25


def test_uncommitted_and_untracked_changes_are_judged(repo: Repo, gate: Callable[..., Judged]) -> None:
    repo.write("profiles/other.yaml", "extends: _base/llama\nwhy: Other.\n" + UNKNOWN.replace("  ", "flags:\n  ", 1))
    repo.edit("profiles/chat.yaml", "64", "32")
    judged = gate(repo)
    assert judged.affected == {"chat": "changed", "other": "new"}
    assert judged.failing == {"flag-unknown-to-engine profiles/other.yaml:4"}
    assert repo.git("status", "--porcelain") == "M profiles/chat.yaml\n?? profiles/other.yaml"


def test_a_fault_of_the_base_is_reported_and_does_not_stop_another_change(
    repo: Repo, gate: Callable[..., Judged]
) -> None:
    repo.git("checkout", "-q", "main")
    repo.append("profiles/chat.yaml", UNKNOWN)
    repo.commit("bad")
    repo.git("checkout", "-q", "-B", "change")
    repo.edit("profiles/_base/llama.yaml", "tp-size: 2", "tp-size: 1")
    repo.commit()
    judged = gate(repo)
    assert judged.code == 0
    assert judged.of("known") == {"flag-unknown-to-engine profiles/chat.yaml:5"}


def test_with_all_no_fault_counts_as_already_on_the_base(repo: Repo, gate: Callable[..., Judged]) -> None:
    repo.append("profiles/chat.yaml", UNKNOWN)
    repo.commit()
    repo.git("branch", "-f", "main", "change")
    judged = gate(repo, "--all", "--base", "main")
    assert set(judged.affected) == {"_base/llama", "batch", "chat", "solo"}
    assert judged.failing == {"flag-unknown-to-engine profiles/chat.yaml:5"}


def test_a_gate_policy_with_an_unknown_key_is_a_usage_error_at_its_place(
    repo: Repo, gate: Callable[..., Judged], monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.append("gate.yaml", "findigs: {}\n")
    repo.commit()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    judged = gate(repo)
    assert judged.code == 2
    assert "gate.yaml:16:1: unknown gate policy key `findigs`" in judged.error
    assert "did you mean `findings`?" in judged.error
    assert "::error file=gate.yaml,line=16,col=1" in judged.error


def test_a_flag_renamed_by_a_release_is_shown_as_each_release_spells_it(
    repo: Repo, gate: Callable[..., Judged]
) -> None:
    repo.edit("profiles/_base/llama.yaml", "'>=0.5.15,<0.5.22'", "'>=0.5.12,<0.5.16'")
    repo.commit()
    repo.git("branch", "-f", "main", "change")
    repo.append("profiles/chat.yaml", "  mamba-radix-cache-strategy: extra_buffer\n")
    repo.commit()
    [chat] = gate(repo).report["affected"]
    assert [(row["releases"][0], row["releases"][-1], row["added"]) for row in chat["effects"]] == [
        ("0.5.12", "0.5.13.post1", ["--mamba-scheduler-strategy extra_buffer"]),
        ("0.5.14", "0.5.15.post1", ["--mamba-radix-cache-strategy extra_buffer"]),
    ]
    assert chat["differences"] == [
        {"kind": "flag", "name": "mamba-radix-cache-strategy", "before": None, "after": "extra_buffer",
         "place": {"path": "profiles/chat.yaml", "line": 5, "column": 3}}
    ]  # fmt: skip


def test_a_profile_that_the_policy_expects_to_be_refused_must_stay_refused(
    repo: Repo, gate: Callable[..., Judged]
) -> None:
    repo.append("gate.yaml", "refused: [bad*]\n")
    repo.write("profiles/bad.yaml", CHAT + UNKNOWN)
    repo.commit()
    repo.git("branch", "-f", "main", "change")
    judged = gate(repo, "--all", "--base", "main")
    assert (judged.code, judged.of("expected")) == (0, {"flag-unknown-to-engine profiles/bad.yaml:5"})
    repo.edit("profiles/bad.yaml", UNKNOWN, "")
    judged = gate(repo, "--base", "main")
    assert (judged.code, judged.failing) == (1, {"refused-profile-passes profiles/bad.yaml:1"})


def test_profiles_moved_into_a_subfolder_are_found_without_a_policy_there_on_the_base(
    repo: Repo, gate: Callable[..., Judged]
) -> None:
    repo.git("checkout", "-q", "main")
    (repo.path / "serving").mkdir()
    for name in ("profiles", "hosts.yaml", "facts", "gate.yaml", "evidence"):
        repo.git("mv", name, f"serving/{name}")
    repo.commit("into a folder")
    repo.git("checkout", "-q", "-B", "change")
    repo.write("serving/profiles/_base/llama.yaml", BASE + UNKNOWN)
    repo.commit()
    judged = gate(Repo(repo.path / "serving"))
    assert judged.failing == {"flag-unknown-to-engine serving/profiles/_base/llama.yaml:10"}
    assert judged.report["files"] == ["serving/profiles/_base/llama.yaml"]
