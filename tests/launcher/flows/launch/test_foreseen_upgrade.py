"""An upgrade is foreseen from the same launch on two releases, and its edits are tried before they are proposed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checks.vocabulary import Severity
from launcher.flows.launch import twin_check
from launcher.flows.launch.foreseen_upgrade import Machine, Upgrade, foresee
from launcher.profile.resolve import resolve
from launcher.transport.local import LocalTransport
from tests.support.small_release import SERVER_ARGS, small_release

RAW = {
    "host": {},
    "gpus": [{"name": "NVIDIA H100", "memory.total": "81559 MiB", "compute_cap": "9.0"}],
    "model": {"path": "/data/m", "path_exists": True, "config": {"model_type": "llama"}, "files": [],
              "weight_bytes": 0, "weight_files": 0, "has_tokenizer": True, "has_chat_template": True},
    "engine": {"packages": {"sglang": "0.5.10", "torch": "2.9.1"}},
}  # fmt: skip


def upgrade(folder: Path, text: str, old: str = "0.5.10", new: str = "0.5.23", raw: Any = None) -> Upgrade:
    (folder / "p.yaml").write_text(text)
    return foresee(LocalTransport(), resolve("p", (folder,)), Machine(raw=raw), old, new)


@pytest.fixture(autouse=True)
def nothing_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGLANG_LAUNCHER_CACHE", str(tmp_path / "cache"))


def test_a_renamed_flag_is_spelled_for_the_user_and_needs_no_edit(tmp_path: Path) -> None:
    found = upgrade(tmp_path, "model: {path: /m}\nflags: {mamba-scheduler-strategy: extra_buffer}\n")
    assert found.spelled == {"mamba-scheduler-strategy": "mamba-radix-cache-strategy"}
    assert (found.edits.settings, found.edits.engine, found.left) == ({}, "", ())


def test_a_removed_flag_becomes_an_edit_that_ends_the_error(tmp_path: Path) -> None:
    found = upgrade(
        tmp_path, "model: {path: /m}\nengine: '>=0.5.10,<0.5.11'\nflags: {enable-dp-attention: true, dp: 2, tp: 2}\n"
    )
    assert "flag-deprecated" in {item.id for item in found.appeared}
    assert found.left == ()
    assert found.edits.settings["flags", "enable-dp-attention"] is not None  # kept for the releases that have it
    assert found.edits.settings["flags", "attn-dp-size"] == {
        "value": "2",
        "why": "SGLang 0.5.23: flag-deprecated",
        "engine": ">=0.5.22",
    }
    assert found.after.errors == ()


def test_an_error_without_an_applicable_remedy_is_left(tmp_path: Path) -> None:
    found = upgrade(tmp_path, "model: {path: /m}\nflags: {attention-backend: cutlass_mla}\n")
    assert [item.id for item in found.left] == ["flag-value-not-a-choice"]
    assert found.left[0].severity is Severity.ERROR


def test_a_setting_limited_to_older_releases_is_no_finding(tmp_path: Path) -> None:
    text = "model: {path: /m}\nenv:\n  SGLANG_ENABLE_SPEC_V2: {value: '1', engine: '<0.5.14'}\n"
    assert "env-variable-removed" not in {item.id for item in upgrade(tmp_path, text).appeared}


def test_a_fault_that_the_new_release_no_longer_has_is_named(tmp_path: Path) -> None:
    found = upgrade(tmp_path, "model: {path: /m}\nflags: {mamba-radix-cache-strategy: x}\n", old="0.5.4", new="0.5.23")
    assert "flag-unknown-to-engine" in {item.id for item in found.gone}


def test_without_the_twin_changed_defaults_are_listed_for_flags_left_out(tmp_path: Path) -> None:
    found = upgrade(tmp_path, "model: {path: /m}\n")
    rows = {item.name: (item.before, item.after) for item in found.arguments}
    assert rows["mamba-full-memory-ratio"] == ("0.9", "automatic")
    assert {found.old.twin, found.new.twin} == {"absent"}
    stated = upgrade(tmp_path, "model: {path: /m}\nflags: {mamba-full-memory-ratio: 0.8}\n")
    assert "mamba-full-memory-ratio" not in {item.name for item in stated.arguments}


def test_the_packages_of_the_host_do_not_count_for_the_new_release(tmp_path: Path) -> None:
    found = upgrade(tmp_path, "model: {path: /data/m}\n", raw=RAW)
    assert found.old.launch.packages["torch"] == "2.9.1"
    assert found.new.launch.packages == {}


def test_both_twins_are_compared_and_a_refusal_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = 'parser.add_argument("--host")'
    sources = [
        SERVER_ARGS.replace(place, f'{place}\n    parser.add_argument("--page-size", default={size})')
        for size in (1, 64)
    ]
    stored = {
        "0.5.10": small_release(tmp_path / "old", sources[0]),
        "0.5.11": small_release(tmp_path / "new", sources[1]),
    }
    monkeypatch.setattr(twin_check.release_store, "stored", lambda version: stored[version][0])
    monkeypatch.setattr(twin_check.twin_environment, "existing", lambda _: stored["0.5.11"][1])
    text = "model: {path: /data/m}\nflags: {backend: BACKEND}\n"
    found = upgrade(tmp_path, text.replace("BACKEND", "auto"), new="0.5.11", raw=RAW)
    assert {found.old.twin, found.new.twin} == {"asked"}
    assert [(item.name, item.before, item.after) for item in found.arguments] == [("page-size", "1", "64")]
    refused = upgrade(tmp_path, text.replace("BACKEND", "trtllm"), new="0.5.11", raw=RAW)
    assert "engine-refuses-arguments" in {item.id for item in refused.left}
    undecided = upgrade(tmp_path, text.replace("BACKEND", "auto, act: connect"), new="0.5.11", raw=RAW)
    assert {undecided.old.twin, undecided.new.twin} == {"undecided"}
