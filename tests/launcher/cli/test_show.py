"""`launch show`: a profile after `extends`, with the place that decided each value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from launcher.cli.show import lines, short
from launcher.profile.resolve import resolve
from tests.support.command_line import Cli

BASE = """\
why: Base.
engine: '>=0.5.20'
model: {path: /m}
hardware: {gpu: H100, count: 2}
flags: {tp-size: 2, disable-radix-cache: true, names: [a, 'b c']}
env:
  MODE: fast
  MY_API_KEY: {secret: true}
accept:
  - {id: some-finding, reason: It is measured., until: 2030-01-31}
  - {id: other-finding, reason: Always.}
expect: {suite: smoke}
"""
CHAT = """\
why: Chat.
extends: base
flags:
  tp-size: {value: 4, why: "More\n    memory."}
"""


@pytest.fixture
def folder(cli: Cli) -> Path:
    path = cli.folder / "profiles"
    path.mkdir()
    (path / "base.yaml").write_text(BASE)
    (path / "chat.yaml").write_text(CHAT)
    return path


def test_a_profile_reads_like_its_yaml(cli: Cli, folder: Path) -> None:
    code, out, err = cli("show", "chat")
    rows = out.splitlines()
    assert (code, err) == (0, "")
    assert rows[0].startswith("# chat (") and rows[1] == "why: Chat."
    assert rows[2:5] == ["engine: '>=0.5.20'", "model:", "  path: /m"]
    assert "  tp-size: 4" in rows and "  tp-size: 2" not in rows
    assert "  disable-radix-cache: true" in rows
    assert '  names: ["a", "b c"]' in rows
    assert "  MODE: 'fast'" in rows
    assert "accept: some-finding until 2030-01-31: It is measured." in rows
    assert "accept: other-finding: Always." in rows
    assert 'expect: {"suite": "smoke"}' in rows
    assert not any("  # " in row for row in rows)


def test_resolved_names_the_place_and_reason_of_each_value(cli: Cli, folder: Path) -> None:
    _, out, _ = cli("show", "chat", "--resolved", "--set", "page-size=16")
    places = {left.strip(): right for left, _, right in (row.partition("  # ") for row in out.splitlines())}
    assert places["tp-size: 4"] == "profiles/chat.yaml:4:3  More memory."
    assert places["path: /m"].startswith("profiles/base.yaml:3:")
    assert places["page-size: 16"] == "--set page-size=16"
    assert places["MODE: 'fast'"].startswith("profiles/base.yaml:7:")
    assert places["why: Chat."] == ""


def test_the_places_stand_in_one_column(cli: Cli, folder: Path) -> None:
    rows = [row for row in cli("show", "chat", "--resolved")[1].splitlines() if row.startswith("  ")]
    assert len({row.index("  # ") for row in rows}) == 1


def test_the_value_of_a_secret_is_never_shown(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-hidden")
    for words in ((), ("--resolved",), ("--json",)):
        assert "sk-hidden" not in cli("show", "chat", *words)[1]
    assert "  MY_API_KEY: (secret, " in cli("show", "chat")[1]


def test_json_has_the_same_values_with_their_places(cli: Cli, folder: Path) -> None:
    document = json.loads(cli("show", "chat", "--json", "--env", "MODE=slow")[1])
    assert document["flags"]["tp-size"]["value"] == "4"
    assert document["env"]["MODE"]["value"] == "slow"
    assert document["name"] == "chat"


@pytest.mark.parametrize("text", ["why: Only a reason.\n", "abstract: true\n", "{}\n"])
def test_a_profile_with_almost_nothing_can_be_shown(cli: Cli, folder: Path, text: str) -> None:
    (folder / "bare.yaml").write_text(text)
    code, out, err = cli("show", "bare", "--resolved")
    assert (code, out.startswith("# bare (")) == (0, True), err


def test_a_changed_value_changes_the_digest_in_the_head(cli: Cli, folder: Path) -> None:
    plain, same, other = (cli("show", "chat", *words)[1].splitlines()[0] for words in ((), (), ("--set", "tp-size=8")))
    assert plain == same != other


@pytest.mark.parametrize("words", [("nothing",), ("missing.yaml",), ("chat", "--unset", "tp"), ("chat", "--set", "=1")])
def test_a_profile_or_change_that_does_not_exist_is_refused(cli: Cli, folder: Path, words: tuple[str, ...]) -> None:
    code, out, err = cli("show", *words)
    assert (code, out, err.startswith("launch: ")) == (2, "", True)


def test_a_place_is_relative_where_that_is_shorter(cli: Cli, folder: Path) -> None:
    assert short(f"{cli.folder}/profiles/chat.yaml:3:1") == "profiles/chat.yaml:3:1"
    assert short(f"{cli.folder}/chat.yaml") == "chat.yaml"
    assert short("/p.yaml:3:1") == "/p.yaml:3:1"
    assert short("--set tp-size=4") == "--set tp-size=4"
    assert short("") == ""


def test_lines_are_those_of_a_profile_of_any_folder(cli: Cli, folder: Path) -> None:
    profile = resolve(str(folder / "base.yaml"), [folder])
    assert lines(profile, resolved=True)[0].endswith("# profiles/base.yaml")
