"""The whole document of a release: shipped schemas against argparse itself, and the exit of the program."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from checks.engine.flag_schema import available
from checks.engine.source.program import describe, main
from tests.support.engine_sources import source_tree
from tests.support.paths import DATA, ROOT

DATA = DATA / "engines"
SHIPPED = ROOT / "checks" / "knowledge" / "engines" / "sglang"
TRUTH: dict[str, list[list[Any]]] = json.loads(lzma.decompress((DATA / "argparse.json.xz").read_bytes()))
SOURCE = """
class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--port", type=int, default=30000, help="A port.")
        if x:
            raise ValueError("the port is taken")
"""


@pytest.mark.parametrize("version", sorted(TRUTH))
def test_the_shipped_schema_agrees_with_argparse(version: str) -> None:
    shipped = json.loads((SHIPPED / f"{version}.json").read_text(encoding="utf-8"))["arguments"]
    ours = [
        [*(a.get(key) for key in ("flags", "dest", "choices", "nargs", "default")), a.get("type", "str")]
        for a in shipped
    ]
    ours = [[*row, a.get("required", False), a.get("action", "store")] for row, a in zip(ours, shipped, strict=True)]
    theirs = [[*row[:7], _action(row[7])] for row in TRUTH[version]]
    assert [_with_sorted_choices(row) for row in ours] == [_with_sorted_choices(row) for row in theirs]


def test_the_truth_covers_every_release_with_a_schema_but_the_post_releases() -> None:
    assert {v for v in available() if ".post" not in v} == set(TRUTH)


def test_a_document_contains_all_that_is_known_about_a_release() -> None:
    found = describe(source_tree({"srt/server_args.py": SOURCE, "version.py": "__version__ = '9.9'\n"}))
    assert list(found) == [
        "version", "origin", "style", "arguments", "unresolved", "environment", "requirements", "architectures",
    ]  # fmt: skip
    assert (found["version"], found["arguments"][0]["flags"]) == ("9.9", ["--port"])


def test_sites_are_listed_only_on_request() -> None:
    [site] = describe(source_tree({"srt/server_args.py": SOURCE}), sites=True)["sites"]
    assert "the port is taken" in site and "ValueError" in site


def test_the_program_writes_one_document_or_one_line_of_complaint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--root", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "no srt/server_args.py" in err
    (tmp_path / "srt").mkdir()
    (tmp_path / "srt" / "server_args.py").write_text(SOURCE)
    assert main(["--root", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["arguments"][0]["dest"] == "port" and err == ""
    assert main(["--wheel", str(tmp_path / "absent.whl")]) == 1


def _action(name: str) -> str:
    return {"_StoreAction": "store", "_StoreTrueAction": "store_true"}.get(name, name)


def _with_sorted_choices(row: list[Any]) -> list[Any]:
    """Sort choices that are a set in the engine and have no order; the reference contains all choices as text."""
    return [*row[:2], None if row[2] is None else sorted(map(str, row[2])), *row[3:]]
