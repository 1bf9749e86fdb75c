"""Which profiles a change affects, and why: by meaning, through parents and hosts, and never because of formatting."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from launcher.gate.affected import Sides, affected, means_all, old_profile, untouched
from launcher.gate.policy import Policy
from launcher.gate.report import Affected
from launcher.gate.side import Broken, Side
from launcher.profile.file import Profile
from tests.support.gate_repo import FILES

PROFILES = {name: text for name, text in FILES.items() if name.startswith("profiles/")}
UNREADABLE = "flgs: {}\n"


def written(folder: Path, files: Mapping[str, str | None]) -> Path:
    for name, text in files.items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return folder


def sides(folder: Path, changes: Mapping[str, str | None], base: Mapping[str, str] = FILES, why: str = "") -> Sides:
    """The base, and a working tree with these changes; None deletes a file."""
    policy = Policy(runs_on={"gpu-box": ("chat", "batch")})
    old = Side(written(folder / "old", base), policy)
    new = Side(written(folder / "new", {**base, **changes}), policy)
    return Sides(new=new, old=old, machines=new.machines()[0], old_machines=old.machines()[0], everything=why)


def kinds(rows: list[Affected]) -> dict[str, str]:
    return {row.name: row.change for row in rows}


def reasons(rows: list[Affected]) -> dict[str, tuple[str, ...]]:
    return {row.name: row.reasons for row in rows}


def edited(name: str, old: str, new: str) -> dict[str, str | None]:
    return {name: FILES[name].replace(old, new)}


def test_an_unchanged_repository_affects_nothing(tmp_path: Path) -> None:
    assert affected(sides(tmp_path, {})) == []


def test_a_profile_whose_text_changed_and_whose_meaning_did_not_is_left_out(tmp_path: Path) -> None:
    text = "# a comment\nextends: [_base/llama]\nflags: {max-running-requests: '64'}\nwhy: Other words.\n"
    assert affected(sides(tmp_path, {"profiles/chat.yaml": text})) == []


def test_a_changed_value_is_shown_with_its_line_and_its_words(tmp_path: Path) -> None:
    [chat] = affected(sides(tmp_path, edited("profiles/chat.yaml", "64", "32")))
    assert (chat.name, chat.change, chat.path) == ("chat", "changed", "profiles/chat.yaml")
    assert chat.reasons == ("its file changed (1 value)",)
    [difference], [effect] = chat.differences, chat.effects
    assert (difference.before, difference.after, str(difference.place)) == ("64", "32", "profiles/chat.yaml:4:3")
    assert (effect.removed, effect.added) == (("--max-running-requests 64",), ("--max-running-requests 32",))


def test_a_change_of_a_parent_affects_the_children_that_do_not_override_it(tmp_path: Path) -> None:
    rows = affected(sides(tmp_path, edited("profiles/_base/llama.yaml", "lpm", "dfs-weight")))
    assert reasons(rows) == {
        "_base/llama": ("its file changed (1 value)",),
        "chat": ("through `extends`: profiles/_base/llama.yaml changed (1 value)",),
    }
    assert [(row.abstract, row.effects == ()) for row in rows] == [(True, True), (False, False)]


def test_a_new_profile_is_new_with_everything_that_it_sets(tmp_path: Path) -> None:
    [row] = affected(sides(tmp_path, {"profiles/new.yaml": FILES["profiles/solo.yaml"].replace("0.8", "0.7")}))
    assert (row.name, row.change, row.reasons) == ("new", "new", ("new",))
    assert {item.before for item in row.differences} == {None}


def test_a_deleted_profile_is_named_with_the_file_that_it_had(tmp_path: Path) -> None:
    [row] = affected(sides(tmp_path, {"profiles/solo.yaml": None}))
    assert (row.name, row.change, row.path) == ("solo", "deleted", "profiles/solo.yaml")


def test_a_profile_under_another_name_is_moved_and_not_deleted(tmp_path: Path) -> None:
    changes = {"profiles/solo.yaml": None, "profiles/small.yaml": FILES["profiles/solo.yaml"]}
    [row] = affected(sides(tmp_path, changes))
    assert (row.name, row.change, row.reasons) == ("small", "moved", ("moved from solo",))


def test_of_two_copies_of_a_deleted_profile_one_is_moved_and_one_is_new(tmp_path: Path) -> None:
    text = FILES["profiles/solo.yaml"]
    rows = affected(sides(tmp_path, {"profiles/solo.yaml": None, "profiles/a.yaml": text, "profiles/b.yaml": text}))
    assert kinds(rows) == {"a": "moved", "b": "new"}


def test_a_move_with_another_value_is_a_deletion_and_a_new_profile(tmp_path: Path) -> None:
    changes = {"profiles/solo.yaml": None, "profiles/small.yaml": FILES["profiles/solo.yaml"].replace("0.8", "0.7")}
    assert kinds(affected(sides(tmp_path, changes))) == {"small": "new", "solo": "deleted"}


def test_a_profile_that_cannot_be_read_is_affected(tmp_path: Path) -> None:
    [row] = affected(sides(tmp_path, {"profiles/chat.yaml": UNREADABLE}))
    assert (row.name, row.reasons, row.differences) == ("chat", ("the profile cannot be read",), ())


def test_a_profile_that_could_not_be_read_on_the_base_is_changed_and_all_of_it_is_different(tmp_path: Path) -> None:
    base = {**FILES, "profiles/solo.yaml": UNREADABLE}
    [row] = affected(sides(tmp_path, {"profiles/solo.yaml": FILES["profiles/solo.yaml"]}, base))
    assert (row.change, {item.before for item in row.differences}) == ("changed", {None})


def test_a_deleted_parent_breaks_its_children(tmp_path: Path) -> None:
    rows = affected(sides(tmp_path, {"profiles/_base/llama.yaml": None}))
    assert kinds(rows) == {"_base/llama": "deleted", "batch": "changed", "chat": "changed"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (edited("hosts.yaml", "0.5.20", "0.5.21"), "host gpu-box: engine 0.5.20 → 0.5.21"),
        (edited("facts/gpu-box.json", "580.65", "580.99"), "the recorded facts of gpu-box changed"),
        (edited("hosts.yaml", "engine:", "env: {A: '1'}\n    engine:"), "the environment of gpu-box changed"),
    ],
)
def test_a_change_of_a_host_affects_the_profiles_that_run_there(
    tmp_path: Path, changes: dict[str, str | None], reason: str
) -> None:
    rows = affected(sides(tmp_path, changes))
    assert reasons(rows) == {"batch": (reason,), "chat": (reason,)}
    assert set(kinds(rows).values()) == {"inputs"}


def test_a_new_host_affects_the_profiles_that_run_there(tmp_path: Path) -> None:
    base = {name: text for name, text in FILES.items() if name not in ("hosts.yaml", "facts/gpu-box.json")}
    rows = affected(sides(tmp_path, {"hosts.yaml": FILES["hosts.yaml"]}, base))
    assert reasons(rows) == dict.fromkeys(("batch", "chat"), ("host gpu-box is new",))


def test_notes_of_a_recording_affect_nothing(tmp_path: Path) -> None:
    assert affected(sides(tmp_path, edited("facts/gpu-box.json", '"notes": []', '"notes": ["again"]'))) == []


def test_a_reason_for_everything_affects_every_profile_and_own_reasons_go_first(tmp_path: Path) -> None:
    changes = edited("profiles/solo.yaml", "0.8", "0.7")
    rows = affected(sides(tmp_path, changes, why="gate.yaml changed"))
    assert kinds(rows) == {"_base/llama": "inputs", "batch": "inputs", "chat": "inputs", "solo": "changed"}
    assert {row.reasons for row in rows if row.change == "inputs"} == {("gate.yaml changed",)}


def test_without_a_base_every_profile_is_new(tmp_path: Path) -> None:
    new = Side(written(tmp_path, FILES), Policy())
    rows = affected(Sides(new=new, old=None, machines=new.machines()[0], old_machines=()))
    assert kinds(rows) == dict.fromkeys(("_base/llama", "batch", "chat", "solo"), "new")


def test_bytes_decide_whether_a_profile_was_touched_parents_included(tmp_path: Path) -> None:
    changed = sides(tmp_path, {"profiles/_base/llama.yaml": FILES["profiles/_base/llama.yaml"] + "# end\n"})
    profiles = {name: changed.new.profile(name) for name in ("chat", "solo")}
    touched = {name: not untouched(item, changed) for name, item in profiles.items() if isinstance(item, Profile)}
    assert touched == {"chat": True, "solo": False}


def test_a_deleted_profile_may_have_hidden_a_shipped_parent(tmp_path: Path) -> None:
    changed = sides(tmp_path, {"profiles/batch.yaml": None})
    chat = changed.new.profile("chat")
    assert isinstance(chat, Profile)
    assert not untouched(chat, changed)


def test_the_old_profile_is_absent_for_a_new_name_and_broken_as_it_was(tmp_path: Path) -> None:
    both = sides(tmp_path, {"profiles/new.yaml": UNREADABLE}, {**PROFILES, "profiles/chat.yaml": UNREADABLE})
    assert old_profile("new", both) is None
    assert isinstance(old_profile("chat", both), Broken)
    assert isinstance(old_profile("solo", both), Profile)


def test_the_first_file_that_the_policy_names_for_all_profiles_is_returned() -> None:
    policy = Policy(affects_all=("pins*", "docker/*"))
    assert means_all(policy, ("README.md", "docker/Dockerfile", "pins.txt")) == "docker/Dockerfile"
    assert means_all(policy, ("README.md", "Pins.txt")) == means_all(Policy(), ("pins.txt",)) == ""
