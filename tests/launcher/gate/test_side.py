"""One state of a repository: its profiles and hosts, read once, with a broken file as a value and not an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import profiles as bundled_profiles
from launcher.errors import ProfileError
from launcher.gate.policy import Policy
from launcher.gate.report import Place
from launcher.gate.side import Broken, Machine, Side
from launcher.profile.file import Profile
from launcher.profile.resolve import available
from tests.support.gate_repo import FACTS, FILES


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(tmp_path / "repo", **FILES)


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def only(side: Side) -> Machine:
    [machine], broken = side.machines()
    assert broken == []
    return machine


def test_a_profile_is_merged_with_its_parents_and_read_once(root: Path) -> None:
    side = Side(root, Policy())
    profile = side.profile("chat")
    assert isinstance(profile, Profile)
    assert profile.flags["tp-size"].value == "2"
    (root / "profiles/chat.yaml").unlink()
    assert side.profile("chat") is profile
    assert list(side.profile_files) == ["_base/llama", "batch", "chat", "solo"]


def test_a_profile_may_extend_one_that_ships_with_the_launcher_without_owning_it(root: Path) -> None:
    shipped = next(iter(available(map(Path, bundled_profiles.__path__))))
    written(root, **{"profiles/mine.yaml": f"extends: {shipped}\n"})
    side = Side(root, Policy())
    assert isinstance(side.profile("mine"), Profile)
    assert shipped not in side.profile_files


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("flgs: {}\n", 1, "unknown profile key `flgs`"),
        ("why: x\nextends: nobody\n", 2, "no profile named `nobody`"),
        ("a: [1\n", 2, "expected"),
        ("\x00", 1, ""),
    ],
)
def test_a_broken_profile_is_a_value_with_its_place(root: Path, text: str, line: int, message: str) -> None:
    written(root, **{"profiles/bad.yaml": text})
    broken = Side(root, Policy(), "serving/").profile("bad")
    assert isinstance(broken, Broken)
    assert (broken.place.path, broken.place.line) == ("serving/profiles/bad.yaml", line)
    assert message in broken.message
    assert str(root) not in broken.message


def test_an_unknown_profile_is_broken_too(root: Path) -> None:
    broken = Side(root, Policy()).profile("chta")
    assert isinstance(broken, Broken)
    assert ("no profile named `chta`" in broken.message, "`chat`" in broken.hint) == (True, True)


def test_profiles_lie_where_the_policy_says_and_a_missing_folder_is_empty(root: Path) -> None:
    assert Side(root, Policy(profiles=("none",))).profile_files == {}
    written(root, **{"other/chat.yaml": "flags: {page-size: 1}\n"})
    both = Side(root, Policy(profiles=("other", "profiles")))
    assert both.profile_files["chat"] == root / "other/chat.yaml"
    assert "solo" in both.profile_files


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("{root}/hosts.yaml:4:3", Place(path="serving/hosts.yaml", line=4, column=3)),
        ("{root}/hosts.yaml", Place(path="serving/hosts.yaml")),
        ("{root}/a:b.yaml", Place(path="serving/a:b.yaml")),
        ("{root}/a:1:x", Place(path="serving/a:1:x")),
        ("/elsewhere/x.yaml:4:3", Place(path="/elsewhere/x.yaml", line=4, column=3)),
        ("{root}2/x.yaml:4:3", Place(path="{root}2/x.yaml", line=4, column=3)),
    ],
)
def test_a_position_becomes_a_place_relative_to_the_top(tmp_path: Path, where: str, place: Place) -> None:
    root = str(tmp_path / "repo")
    expected = Place(path=place.path.format(root=root), line=place.line, column=place.column)
    assert Side(Path(root), Policy(), "serving/").place(where.format(root=root)) == expected


def test_the_bytes_of_a_file_are_read_by_its_name_in_the_repository(root: Path) -> None:
    side = Side(root, Policy(), "serving/")
    name = side.name_of(str(root / "hosts.yaml"))
    assert side.bytes_of(name) == (root / "hosts.yaml").read_bytes()
    assert side.bytes_of("serving/nothing.yaml") is None
    assert side.bytes_of("serving/profiles") is None


def test_a_host_has_the_recorded_facts_of_its_name(root: Path) -> None:
    machine = only(Side(root, Policy()))
    assert (machine.name, machine.engine, machine.recorded_engine) == ("gpu-box", "0.5.20", "0.5.20")
    assert len(machine.raw["gpus"]) == 2
    assert (machine.place.path, machine.engine_place.line) == ("hosts.yaml", 4)


def test_the_release_of_the_inventory_goes_before_the_recorded_one(root: Path) -> None:
    written(root, **{"hosts.yaml": FILES["hosts.yaml"].replace("0.5.20", "0.5.21")})
    machine = only(Side(root, Policy()))
    assert (machine.engine, machine.recorded_engine) == ("0.5.21", "0.5.20")


def test_without_a_release_in_the_inventory_the_recorded_one_holds(root: Path) -> None:
    written(root, **{"hosts.yaml": "hosts:\n  gpu-box: {address: a, env: {CUDA_HOME: /cuda}}\n"})
    machine = only(Side(root, Policy()))
    assert (machine.engine, str(machine.engine_place)) == ("0.5.20", "facts/gpu-box.json:1:1")
    assert machine.env == {"CUDA_HOME": "/cuda"}


def test_a_host_without_facts_and_release_is_a_machine_of_which_nothing_is_known(root: Path) -> None:
    written(root, **{"hosts.yaml": "hosts: {bare: {address: a}}\n"})
    machine = only(Side(root, Policy(facts="none")))
    assert (machine.name, machine.engine, machine.raw, machine.recorded_engine) == ("bare", None, {}, None)


def test_recorded_facts_of_a_host_that_the_inventory_does_not_have_are_a_machine(root: Path) -> None:
    written(root, **{"facts/lab.json": json.dumps(FACTS), "facts/README.md": "# notes"})
    machines, broken = Side(root, Policy()).machines()
    assert ([item.name for item in machines], broken) == (["gpu-box", "lab"], [])
    (root / "hosts.yaml").unlink()
    assert [item.name for item in Side(root, Policy()).machines()[0]] == ["gpu-box", "lab"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("facts/gpu-box.json", "{", "cannot read the recorded facts"),
        ("facts/lab.json", "[]", "not a facts file"),
        ("facts/lab.json", '{"host": {}, "gpus": {}}', "`gpus` is dict"),
        ("hosts.yaml", "host: {}\n", "unknown key `host`"),
        ("hosts.yaml", "hosts: {gpu-box: {adress: a}}\n", "`adress`"),
    ],
)
def test_a_broken_file_is_reported_with_its_name_and_the_other_machines_stay(
    root: Path, name: str, text: str, message: str
) -> None:
    written(root, **{name: text, "facts/other.json": json.dumps(FACTS)})
    machines, [broken] = Side(root, Policy()).machines()
    assert (broken.place.path, message in broken.message) == (name, True)
    assert "other" in [item.name for item in machines]


def test_a_host_whose_entry_is_broken_is_not_taken_for_one_without_an_entry(root: Path) -> None:
    written(root, **{"hosts.yaml": "hosts: {gpu-box: {adress: a}}\n"})
    machines, broken = Side(root, Policy()).machines()
    assert (machines, len(broken)) == ([], 1)


def test_an_inventory_that_cannot_be_read_is_an_error_and_an_absent_one_is_none(root: Path) -> None:
    assert Side(root, Policy(hosts="none.yaml")).hosts_file() is None
    written(root, **{"hosts.yaml": "[]\n"})
    with pytest.raises(ProfileError):
        Side(root, Policy()).hosts_file()


def test_what_was_true_only_at_the_moment_of_the_recording_does_not_last() -> None:
    raw: dict[str, Any] = {**FACTS, "notes": ["x"], "port": {"free": False}, "gpu_processes": [], "asked": {}}
    machine = Machine(name="a", place=Place(path="f"), engine=None, engine_place=Place(path="f"), raw=raw)
    assert machine.lasting == {name: item for name, item in FACTS.items() if name != "notes"}
