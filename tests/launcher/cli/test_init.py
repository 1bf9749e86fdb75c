"""`launch init`: a repository that lists, checks and gates at once, and never one over existing files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import Cli


def test_every_printed_file_exists_and_the_next_command_is_named(cli: Cli) -> None:
    code, out, err = cli("init", "new/repo")
    names = out.splitlines()
    assert code == 0
    assert {"new/repo/gate.yaml", "new/repo/profiles/first.yaml", "new/repo/.gitlab-ci.yml"} <= set(names)
    assert all(Path(name).is_file() for name in names)
    assert err.startswith("next: cd new/repo && git init")


def test_the_first_profile_can_be_shown(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("init", "repo")
    monkeypatch.chdir("repo")
    code, out, _ = cli("show", "first")
    assert (code, out.startswith("# first (")) == (0, True)


def test_an_existing_file_is_kept_and_nothing_else_is_written(cli: Cli) -> None:
    mine = cli.folder / "repo" / "hosts.yaml"
    mine.parent.mkdir()
    mine.write_text("mine")
    code, out, err = cli("init", "repo")
    assert (code, out, "hosts.yaml" in err) == (2, "", True)
    assert [path.name for path in mine.parent.iterdir()] == ["hosts.yaml"]
    assert mine.read_text() == "mine"


def test_a_file_is_not_a_place_for_a_repository(cli: Cli) -> None:
    (cli.folder / "repo").write_text("")
    assert cli("init", "repo")[0] == 2


def test_a_folder_must_be_named(cli: Cli) -> None:
    assert cli("init")[0] == 2
    assert list(cli.folder.iterdir()) == []
