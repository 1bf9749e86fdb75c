"""A run on disk: written atomically, found by any part of its id, readable after a killed launcher."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from checks.after.probes.expectations import ExpectError
from launcher.errors import LauncherError, RunNotFound
from launcher.run.state import State
from launcher.run.store import ID, Run, RunStore, default_root

NOW = datetime(2026, 11, 29, 12, 30, 5, tzinfo=UTC)
HOSTILE = "é💥 \u2028 \x85 \x0c 'quoted'\n"


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


def made(store: RunStore, *names: str, **info: Any) -> list[Run]:
    """Create runs that began one second after another."""
    runs = [store.create(name, NOW.replace(second=at)) for at, name in enumerate(names)]
    for run in runs:
        run.update(**info)
    return runs


@pytest.mark.parametrize(
    "profile", ["qwen3-8b", "Qwen 3/8B", "../../etc", "", "…", "x" * 300, "-rf", ".hidden", HOSTILE]
)
def test_any_profile_name_gives_an_id_that_is_one_folder(store: RunStore, profile: str) -> None:
    run = store.create(profile, NOW)
    assert ID.match(run.id)
    assert run.folder.parent == store.root
    assert run.folder.stat().st_mode & 0o077 == 0
    assert len(run.id) < 80
    assert [other.id for other in store.all()] == [run.id]


def test_two_runs_of_one_second_differ(store: RunStore) -> None:
    assert store.create("p", NOW).id != store.create("p", NOW).id


def test_a_document_is_read_back_and_leaves_no_other_file(store: RunStore) -> None:
    [run] = made(store, "p")
    data = {"text": HOSTILE, "list": [1, None]}
    run.write("facts", data)
    run.write("facts", {**data, "second": True})
    assert run.read("facts") == {**data, "second": True}
    assert {path.name for path in run.folder.iterdir()} == {"run.json", "facts.json"}


def test_a_document_that_cannot_be_written_leaves_the_one_before(store: RunStore) -> None:
    [run] = made(store, "p")
    run.write("facts", {"a": 1})
    with pytest.raises(TypeError):
        run.write("facts", {"a": object()})
    assert run.read("facts") == {"a": 1}


def test_a_missing_document_is_none(store: RunStore) -> None:
    [run] = made(store, "p")
    assert run.read("validation") is None


def test_text_does_not_depend_on_the_locale(store: RunStore) -> None:
    [run] = made(store, "p")
    run.write_text("launch.sh", HOSTILE)
    assert (run.folder / "launch.sh").read_bytes() == HOSTILE.encode()


def test_fields_are_merged_into_the_state(store: RunStore) -> None:
    [run] = made(store, "p", host="box")
    run.update(state=State.READY)
    assert (run.state, run.host) == (State.READY, "box")
    assert Run(id="x", folder=store.root).state is State.PLANNED


def test_events_are_read_in_order_without_a_line_that_was_cut_off(store: RunStore) -> None:
    [run] = made(store, "p")
    assert run.events() == []
    for text in (HOSTILE, "{", "}"):
        run.append_event({"event": "Progress", "text": text})
    with (run.folder / "events.jsonl").open("a") as out:
        out.write('{"event": "Exited", "co')
    assert [event["text"] for event in run.events()] == [HOSTILE, "{", "}"]


def test_an_incomplete_line_costs_no_other_event_than_the_one_on_it(store: RunStore) -> None:
    [run] = made(store, "p")
    run.append_event({"event": "Ready"})
    with (run.folder / "events.jsonl").open("a") as out:
        out.write('{"event": "Progress", "text": "{}')
    assert run.events() == [{"event": "Ready"}]
    run.append_event({"event": "Exited"})
    run.append_event({"event": "Started"})
    assert run.events() == [{"event": "Ready"}, {"event": "Started"}]


def test_a_run_that_was_never_started_has_no_plan(store: RunStore) -> None:
    [run] = made(store, "p")
    with pytest.raises(LauncherError, match="never started"):
        _ = run.plan


def test_a_plan_is_read_back(run: Run) -> None:
    assert run.plan.profile == "scripted"
    assert json.loads(json.dumps(run.plan.to_json())) == run.read("plan")


def test_the_expectations_are_those_of_the_stored_profile(store: RunStore) -> None:
    [run] = made(store, "p")
    assert run.expectations.soak == 0
    run.write("profile", {"expect": {"soak": "10m"}})
    assert run.expectations.soak == 600
    run.write("profile", {"expect": {"sped": 1}})
    with pytest.raises(ExpectError):
        _ = run.expectations


def test_runs_are_listed_with_the_newest_first_and_without_other_files(store: RunStore) -> None:
    assert list(store.all()) == []
    first, second = made(store, "b", "a")
    (store.root / "notes.txt").touch()
    (store.root / f"{first.id}.bak").mkdir()
    assert [run.id for run in store.all()] == [second.id, first.id]


def test_a_run_is_found_by_any_end_of_its_id_or_by_its_folder(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = made(store, "one", "two")
    assert store.find("last").id == second.id
    for text in (first.id, first.id[:-1], first.id[-4:], "20261129-123000", str(first.folder)):
        assert store.find(text).id == first.id, text
    monkeypatch.chdir(first.folder)
    assert store.find(".").id == first.id


def test_an_ambiguous_or_unknown_id_is_reported(store: RunStore) -> None:
    for text in ("last", "nothing"):
        with pytest.raises(RunNotFound, match=text) as caught:
            store.find(text)
        assert "launch runs" in caught.value.hint
    runs = made(store, "one", "two")
    with pytest.raises(RunNotFound, match="matches 2 runs") as caught:
        store.find("20261129")
    assert all(run.id in caught.value.message for run in runs)


def test_an_empty_id_matches_no_run(store: RunStore) -> None:
    made(store, "one")
    with pytest.raises(RunNotFound):
        store.find("")


def test_the_latest_failure_is_that_of_the_host(store: RunStore) -> None:
    crashed, refused, ready = made(store, "one", "two", "three", host="box")
    assert store.last_crash() is None
    crashed.update(state=State.CRASHED)
    refused.update(state=State.REFUSED, host="other")
    ready.update(state=State.READY)
    assert (store.last_crash() or ready).id == refused.id
    assert (store.last_crash("box") or ready).id == crashed.id
    assert store.last_crash("third") is None


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SGLANG_LAUNCHER_STATE": "/s", "XDG_STATE_HOME": "/x"}, "/s"),
        ({"XDG_STATE_HOME": "/x"}, "/x/sglang-launcher"),
        ({"XDG_STATE_HOME": "", "HOME": "/h"}, "/h/.local/state/sglang-launcher"),
    ],
)
def test_the_state_folder_follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
) -> None:
    for name in ("SGLANG_LAUNCHER_STATE", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert default_root() == Path(expected)
    assert RunStore().root == Path(expected) / "runs"
