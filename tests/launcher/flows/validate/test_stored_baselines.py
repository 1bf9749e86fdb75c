"""A baseline is looked up by name, in the nearest folder first; a validated run is a baseline too."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from launcher.errors import UsageError
from launcher.flows.validate.stored_baselines import available, find, folders, save
from launcher.run.store import Run, RunStore

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
VALIDATION: dict[str, Any] = {
    "suite": "standard", "outcome": "pass", "level": "good enough", "summary": "good", "model": "smol",
    "engine": "0.5.23", "verdicts": [{"id": "prose", "outcome": "pass", "message": "a [ b ] c", "figures": {}}],
    "samples": {"speed": {"decode": [101.5, 99.25, 100.0], "none": []}},
}  # fmt: skip


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    monkeypatch.setenv("SGLANG_LAUNCHER_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return RunStore()


def validated(store: RunStore, name: str = "p") -> Run:
    run = store.create(name, NOW)
    run.update(state="validated", profile=name, digest="abc", host="gpu-box")
    run.write("validation", VALIDATION)
    return run


def test_a_saved_baseline_is_read_back_unchanged(store: RunStore, tmp_path: Path) -> None:
    run = validated(store)
    path = save(run, "prod", folders()[-1], NOW)
    assert path == tmp_path / "state" / "baselines" / "prod.json"
    stored = find("prod", folders(), store)
    assert stored.validation == VALIDATION
    assert stored.about["run"] == run.id
    assert stored.about["profile"] == "p"


def test_each_list_of_numbers_is_on_one_line_for_review(store: RunStore) -> None:
    text = save(validated(store), "prod", folders()[-1], NOW).read_text()
    assert '"decode": [101.5, 99.25, 100.0]' in text
    assert json.loads(text)["validation"] == VALIDATION


def test_a_committed_baseline_next_to_the_profile_hides_the_user_s(store: RunStore, tmp_path: Path) -> None:
    save(validated(store), "prod", folders()[-1], NOW)
    committed = save(validated(store), "prod", tmp_path / "repo" / "baselines", NOW)
    profile = tmp_path / "repo" / "profiles" / "big" / "p.yaml"
    assert find("prod", folders(str(profile)), store).path == str(committed)
    assert [item.path for item in available(folders(str(profile)))] == [str(committed)]


def test_a_run_is_its_own_baseline(store: RunStore) -> None:
    run = validated(store)
    assert find("last", folders(), store).name == run.id


def test_a_validation_file_is_accepted_as_a_baseline(store: RunStore, tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text(json.dumps(VALIDATION))
    assert find(str(tmp_path / "v.json"), (), store).validation == VALIDATION


def test_an_unknown_name_suggests_a_similar_baseline(store: RunStore) -> None:
    save(validated(store), "production", folders()[-1], NOW)
    with pytest.raises(UsageError) as error:
        find("prodution", folders(), store)
    assert "production" in error.value.hint


@pytest.mark.parametrize("name", ["../evil", "a/b", "", ".hidden", "x" * 99])
def test_an_invalid_name_is_refused(store: RunStore, name: str) -> None:
    with pytest.raises(UsageError):
        save(validated(store), name, folders()[-1], NOW)


def test_a_run_that_was_never_validated_is_refused(store: RunStore) -> None:
    run = store.create("p", NOW)
    run.update(state="ready")
    for use in (lambda: save(run, "x", folders()[-1], NOW), lambda: find(run.id, (), store)):
        with pytest.raises(UsageError, match="never validated"):
            use()


@pytest.mark.parametrize("content", ["{", "[]", '{"validation": 3}', "{}"])
def test_a_file_without_a_validation_is_refused(store: RunStore, tmp_path: Path, content: str) -> None:
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(UsageError):
        find(str(tmp_path / "bad.json"), (), store)
