"""A new profiles repository: written completely or not at all, and nothing that exists is touched."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from checks.catalog.yaml_reader import read
from launcher.errors import UsageError
from launcher.gate.scaffold import LAYOUT, scaffold
from launcher.profile.resolve import resolve
from tests.support.paths import ROOT

TEMPLATES = ROOT / "launcher/gate/templates"


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_names_that_are_returned_are_the_files_that_were_written(tmp_path: Path) -> None:
    new = tmp_path / "some" / "new"
    names = scaffold(new)
    assert set(names) == files(new)
    assert len(names) == len(LAYOUT) + 1


def test_every_yaml_file_can_be_read_and_the_first_profile_resolves(tmp_path: Path) -> None:
    for name in scaffold(tmp_path):
        if name.endswith((".yaml", ".yml")):
            assert read(tmp_path / name).mapping()
    assert resolve("first", (tmp_path / "profiles",)).flags


def test_the_requirement_accepts_the_release_that_wrote_it(tmp_path: Path) -> None:
    scaffold(tmp_path)
    requirement = Requirement((tmp_path / "requirements.txt").read_text().strip())
    assert requirement.name == "sglang-launcher"
    assert requirement.specifier.contains(version("sglang-launcher"), prereleases=True)
    assert not requirement.specifier.contains("99.0")


def test_an_existing_file_is_not_overwritten_and_then_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text("mine\n")
    with pytest.raises(UsageError, match=r"already contains gate\.yaml: nothing was written"):
        scaffold(tmp_path)
    assert files(tmp_path) == {"gate.yaml"}
    assert (tmp_path / "gate.yaml").read_text() == "mine\n"


def test_every_file_in_the_way_is_named(tmp_path: Path) -> None:
    scaffold(tmp_path)
    (tmp_path / "hosts.yaml").unlink()
    with pytest.raises(UsageError) as caught:
        scaffold(tmp_path)
    assert "requirements.txt" in caught.value.message and "profiles/first.yaml" in caught.value.message
    assert "hosts.yaml" not in caught.value.message


def test_a_dangling_link_counts_as_an_existing_file(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"hosts\.yaml"):
        scaffold(tmp_path)


def test_a_file_in_place_of_the_folder_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "new").write_text("a file\n")
    with pytest.raises(UsageError, match="is a file, not a folder"):
        scaffold(tmp_path / "new")
    assert (tmp_path / "new").read_text() == "a file\n"


def test_other_files_of_the_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles/mine.yaml").write_text("flags: {}\n")
    scaffold(tmp_path)
    assert (tmp_path / "profiles/mine.yaml").read_text() == "flags: {}\n"


@pytest.mark.parametrize("blocked", ["profiles", ".github"])
def test_a_file_in_place_of_a_subfolder_is_a_usage_error_and_nothing_is_written(tmp_path: Path, blocked: str) -> None:
    (tmp_path / blocked).write_text("a file\n")
    with pytest.raises(UsageError, match=f"already contains {blocked}: nothing"):
        scaffold(tmp_path)
    assert files(tmp_path) == {blocked}


def test_a_link_to_a_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "new").mkdir()
    (tmp_path / "new/profiles").symlink_to(tmp_path / "elsewhere")
    scaffold(tmp_path / "new")
    assert files(tmp_path / "elsewhere") == {"first.yaml"}


def test_a_place_where_nothing_can_be_written_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="cannot write /proc/new: "):
        scaffold(Path("/proc/new"))


def test_every_template_is_used() -> None:
    assert {path.name for path in TEMPLATES.iterdir()} == set(LAYOUT.values())
