"""`launch list`: profiles that can be launched; a broken one is reported and does not hide the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import Cli

GOOD = "why: Ünïcode chat. More words.\nengine: '>=0.5.20'\nmodel: {path: /m}\n"


@pytest.fixture
def folder(cli: Cli) -> Path:
    path = cli.folder / "profiles"
    (path / "_base").mkdir(parents=True)
    (path / "team").mkdir()
    (path / "chat.yaml").write_text(GOOD)
    (path / "team" / "batch.yaml").write_text("model: {path: /m}\n")
    for hidden in ("_base/llama", "_draft", "team/_part"):
        (path / f"{hidden}.yaml").write_text("model: {path: /m}\n")
    (path / "parent.yaml").write_text("abstract: true\nmodel: {path: /m}\n")
    return path


def names(cli: Cli, *words: str) -> set[str]:
    listed = json.loads(cli("list", "--json", *words)[1])["profiles"]
    return {row["name"] for row in listed if not row["path"].startswith("/")}


def test_only_what_can_be_launched_is_listed(cli: Cli, folder: Path) -> None:
    assert names(cli) == {"chat", "team/batch"}
    assert names(cli, "--all") == {"chat", "team/batch", "_base/llama", "_draft", "team/_part", "parent"}


def test_a_line_has_the_name_the_releases_and_the_purpose(cli: Cli, folder: Path) -> None:
    code, out, err = cli("list")
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in out.splitlines()}
    assert (code, err) == (0, "")
    assert rows["chat"] == [">=0.5.20", "Ünïcode chat"]
    assert rows["team/batch"] == ["any"]


def test_the_profiles_that_ship_are_listed_everywhere(cli: Cli) -> None:
    code, out, _ = cli("list")
    assert (code, "smollm2-135m-cpu" in out) == (0, True)


def test_the_folder_of_choice_comes_first(cli: Cli, folder: Path) -> None:
    other = cli.folder / "other"
    other.mkdir()
    (other / "chat.yaml").write_text("why: Mine.\nmodel: {path: /m}\n")
    [row] = [
        row for row in json.loads(cli("list", "--profiles", "other", "--json")[1])["profiles"] if row["name"] == "chat"
    ]
    assert (row["why"], row["engine"]) == ("Mine", "")


@pytest.mark.parametrize(
    "text",
    [b"flags: [", b"no-such-key: 1\n", b"extends: nothing\n", b"\xff\xfe", b"extends: broken\n", b"- 1\n"],
)
def test_a_broken_profile_is_named_and_the_others_are_listed(cli: Cli, folder: Path, text: bytes) -> None:
    (folder / "broken.yaml").write_bytes(text)
    code, out, err = cli("list")
    assert code == 2
    listed = {line.split()[0] for line in out.splitlines()}
    assert "chat" in listed and "broken" not in listed
    assert err.startswith("broken: broken: profiles/broken.yaml")
    code, out, _ = cli("list", "--json")
    assert (code, [item["name"] for item in json.loads(out)["broken"]]) == (2, ["broken"])


def test_a_link_that_leads_nowhere_is_named_and_the_others_are_listed(cli: Cli, folder: Path) -> None:
    (folder / "lost.yaml").symlink_to("nowhere")
    (folder / "folder.yaml").mkdir()
    code, out, err = cli("list")
    assert (code, "chat " in out) == (2, True)
    assert "broken: lost: " in err and "broken: folder: " in err
