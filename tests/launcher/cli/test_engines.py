"""`launch engines`: the flags of a release, what an upgrade changes, the flags of a build that is not a release."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import Cli

OLD, NEW = "0.5.9", "0.5.23"


def test_every_release_is_listed_with_its_flags(cli: Cli) -> None:
    code, out, _ = cli("engines")
    rows = [line.split()[:2] for line in out.splitlines()]
    assert (code, {OLD, NEW} <= {row[0] for row in rows}) == (0, True)
    document = json.loads(cli("engines", "list", "--json")[1])
    assert [[row["version"], str(row["flags"])] for row in document] == rows


def test_all_flags_of_a_release_are_shown_one_a_line(cli: Cli) -> None:
    code, out, err = cli("engines", "show", NEW)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line for line in lines if line.startswith("--page-size  ")] != []
    assert len(lines) == len(json.loads(cli("engines", "show", NEW, "--json")[1]))


@pytest.mark.parametrize("name", [("page-size",), ("--", "--page-size")])
def test_one_flag_is_shown_with_default_and_place(cli: Cli, name: tuple[str, ...]) -> None:
    code, out, _ = cli("engines", "show", NEW, *name)
    assert (code, out.startswith(f"--page-size   SGLang {NEW}\n")) == (0, True)
    assert "  type int, default " in out
    assert "  declared in " in out
    document = json.loads(cli("engines", "show", "--json", NEW, *name)[1])
    assert (document["names"], document["type"]) == (["page-size"], "int")


def test_the_choices_of_a_flag_are_listed(cli: Cli) -> None:
    assert "fp8_e5m2" in cli("engines", "show", NEW, "kv-cache-dtype")[1].partition("choices: ")[2]
    assert "choices" not in cli("engines", "show", NEW, "page-size")[1]


def test_a_deprecated_flag_names_what_replaces_it(cli: Cli) -> None:
    flags = json.loads(cli("engines", "show", NEW, "--json")[1])
    replaced = next(flag for flag in flags if flag["deprecated"] and flag["replacement"])
    assert f"deprecated; use {replaced['replacement']}" in cli("engines", "show", NEW, replaced["names"][0])[1]
    assert "deprecated" not in cli("engines", "show", NEW, "page-size")[1]
    marked = [line for line in cli("engines", "show", NEW)[1].splitlines() if "(deprecated)" in line]
    assert len(marked) == sum(flag["deprecated"] for flag in flags)


@pytest.mark.parametrize(("name", "hint"), [("page-sise", "similar flags: --page-size"), ("qqqqqq", "")])
def test_an_unknown_flag_is_refused_with_similar_ones(cli: Cli, name: str, hint: str) -> None:
    code, out, err = cli("engines", "show", NEW, name)
    assert (code, out, f"has no flag `--{name}`" in err) == (2, "", True)
    assert ("hint" in err, hint in err) == (bool(hint), True)


def test_a_release_that_another_one_stands_in_for_is_named(cli: Cli) -> None:
    assert cli("engines", "show", "9.9.9", "page-size")[2].startswith("note: 9.9.9 is not recorded: ")
    assert cli("engines", "diff", "9.9.9", NEW)[2].startswith("note: ")


@pytest.mark.parametrize(
    "words",
    [
        ("sho",), ("show",), ("show", "banana"), ("show", NEW, "tp-size", "more"), ("diff", OLD), ("list", NEW),
        ("diff", "banana", NEW), ("diff", OLD, "banana"), ("diff", OLD, NEW, "tp-size"), ("capture", NEW), ("capture",),
    ],
)  # fmt: skip
def test_faulty_arguments_are_refused(cli: Cli, words: tuple[str, ...]) -> None:
    code, out, err = cli("engines", *words)
    assert (code, out, "hint" in err) == (2, "", True)


def test_a_release_does_not_differ_from_itself(cli: Cli) -> None:
    assert cli("engines", "diff", NEW, NEW) == (0, "no changes\n", "")
    assert json.loads(cli("engines", "diff", NEW, NEW, "--json")[1]) == {"changes": []}


def test_an_upgrade_lists_each_change_and_a_downgrade_the_reverse(cli: Cli) -> None:
    up = json.loads(cli("engines", "diff", OLD, NEW, "--json")[1])["changes"]
    down = json.loads(cli("engines", "diff", NEW, OLD, "--json")[1])["changes"]
    added = {change["flag"] for change in up if change["kind"] == "added"}
    assert added and added == {change["flag"] for change in down if change["kind"] == "removed"}
    lines = cli("engines", "diff", OLD, NEW)[1].splitlines()
    assert len(lines) == len(up)
    assert any(" → " in line for line in lines)
    assert not any(line.endswith(" ") for line in lines)


def test_the_difference_for_a_profile_is_what_an_upgrade_shows(cli: Cli) -> None:
    (cli.folder / "p.yaml").write_text("model: {path: /m}\nflags: {cuda-graph-max-bs: 8, page-size: 1}\n")
    code, out, _ = cli("engines", "diff", OLD, NEW, "--profile", "p.yaml")
    assert (code, out) == (0, cli("upgrade", "p.yaml", "--from", OLD, "--to", NEW)[1])
    assert "cuda-graph-max-bs" in out


def test_a_build_is_captured_from_its_source(cli: Cli) -> None:
    source = cli.folder / "source" / "sglang" / "srt"
    source.mkdir(parents=True)
    (source.parent / "__init__.py").write_text("")
    code, out, err = cli("engines", "capture", "--wheel", str(cli.folder / "source"))
    assert (code, out) == (2, ""), err
    assert str(cli.folder / "source") in err


@pytest.mark.parametrize("text", [None, b"not a wheel"])
def test_what_is_not_a_wheel_is_refused(cli: Cli, text: bytes | None) -> None:
    path = Path(cli.folder / "a.whl")
    if text is not None:
        path.write_bytes(text)
    code, out, err = cli("engines", "capture", "--wheel", str(path))
    assert (code, out, "a.whl" in err) == (2, "", True)


def test_a_host_whose_engine_cannot_be_read_is_named(engine: Cli) -> None:
    code, out, err = engine("engines", "capture", "--host", "local")
    assert (code, out, "cannot read the engine's source on local" in err) == (4, "", True)
