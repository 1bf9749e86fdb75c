"""`launch upgrade`: one screen on what a release changes for a profile, and a diff that --apply writes."""

from __future__ import annotations

import json

import pytest

from tests.support.command_line import Cli

GONE = """\
# eight cards
model: {path: /m}
engine: '>=0.5.10,<0.5.11'
flags:
  tp: 2
env:
  SGLANG_ENABLE_SPEC_V2: '1'   # overlap
"""


@pytest.fixture(autouse=True)
def nothing_fetched(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGLANG_LAUNCHER_CACHE", str(cli.folder / "cache"))
    (cli.folder / "p.yaml").write_text(GONE)


def test_the_screen_shows_what_changes_and_the_edits(cli: Cli) -> None:
    code, out, _ = cli("upgrade", "p.yaml", "--from", "0.5.10", "--to", "0.5.23")
    assert code == 0
    assert out.startswith("p: SGLang 0.5.10 → 0.5.23\n")
    assert "--mamba-full-memory-ratio" in out
    assert "  +engine: '>=0.5.10,<=0.5.23'\n" in out
    assert "  +  SGLANG_ENABLE_SPEC_V2: {value: '1', engine: <0.5.21} # overlap\n" in out
    assert "edits (add --apply to write them)" in out
    assert (cli.folder / "p.yaml").read_text() == GONE


def test_apply_writes_the_diff_and_a_second_upgrade_finds_nothing_to_edit(cli: Cli) -> None:
    code, out, _ = cli("upgrade", "p.yaml", "--from", "0.5.10", "--to", "0.5.23", "--apply")
    assert (code, "written into the profile" in out) == (0, True)
    assert (cli.folder / "p.yaml").read_text().startswith("# eight cards\n")
    code, out, _ = cli("upgrade", "p.yaml", "--from", "0.5.10", "--to", "0.5.23")
    assert (code, "needs no edit for 0.5.23" in out) == (0, True)
    assert cli("check", "p.yaml", "--engine", "0.5.23", "--fast")[0] == 0


def test_what_is_left_for_a_person_is_shown_and_exits_2(cli: Cli) -> None:
    (cli.folder / "p.yaml").write_text("model: {path: /m}\nflags: {attention-backend: cutlass_mla}\n")
    code, out, _ = cli("upgrade", "p.yaml", "--from", "0.5.10", "--to", "0.5.23")
    assert (code, "left for you: p does not start on 0.5.23 yet" in out) == (2, True)
    assert "flag-value-not-a-choice" in out


def test_the_document_has_the_same_content(cli: Cli) -> None:
    code, out, _ = cli("upgrade", "p.yaml", "--from", "0.5.10", "--to", "0.5.23", "--json")
    document = json.loads(out)
    assert (code, document["from"], document["to"], document["left"]) == (0, "0.5.10", "0.5.23", [])
    assert document["resolved_by"] == {"from": "absent", "to": "absent"}
    assert [item["id"] for item in document["findings"]] == ["env-variable-removed"]
    assert any(line.startswith("+engine") for line in document["diff"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("p.yaml", "--to", "0.5.23"), "the present release is unknown"),
        (("p.yaml", "--to", "0.5.23", "--from", "0.5.23"), "is the release that the profile runs on now"),
        (("p.yaml", "--to", "banana", "--from", "0.5.10"), "is not an SGLang release"),
        (("nobody", "--to", "0.5.23", "--from", "0.5.10"), "no profile named `nobody`"),
        (("p.yaml", "--to", "0.5.23", "--host", "local", "--facts", "f.json"), "cannot be combined with --host"),
        (("_base/cpu", "--to", "0.5.23", "--from", "0.5.10"), "is abstract"),
    ],
)
def test_faulty_arguments_are_refused(cli: Cli, words: tuple[str, ...], said: str) -> None:
    code, _, err = cli("upgrade", *words)
    assert (code, said in err) == (2, True)


def test_long_values_are_shown_where_they_differ() -> None:
    from launcher.cli.upgrade import WIDTH, _apart

    same = "{'a': 1, 'b': [" + "1, " * 40 + "2], "
    before, after = _apart(same + "'c': 1}", same + "'c': 2}")
    assert (before, after) == ("… 'c': 1}", "… 'c': 2}")
    assert _apart("short", "other") == ("short", "other")
    assert all(len(text) <= WIDTH + 4 for text in _apart("x" * 200, "y" * 200))


def test_what_is_written_keeps_its_line_ends(cli: Cli) -> None:
    path = cli.folder / "p.yaml"
    path.write_bytes(GONE.replace("\n", "\r\n").encode())
    assert cli("upgrade", "p.yaml", "--from", "0.5.10", "--to", "0.5.23", "--apply")[0] == 0
    written = path.read_bytes()
    assert (b"<0.5.21" in written, written.count(b"\n")) == (True, written.count(b"\r\n"))


def test_a_shipped_profile_is_not_written(cli: Cli) -> None:
    name = "qwen3.5-397b/as-tried-first"
    code, out, err = cli("upgrade", name, "--from", "0.5.10", "--to", "0.5.23", "--apply")
    assert (code, out, "belongs to the launcher" in err, "hint: copy it first: cp " in err) == (2, "", True, True)


def test_a_release_that_another_one_stands_in_for_is_named(cli: Cli) -> None:
    assert "note: 9.9.9 is not recorded" in cli("upgrade", "p.yaml", "--from", "0.5.10", "--to", "9.9.9")[2]
