"""An edited YAML file keeps everything that was not edited, as a person would."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.catalog.yaml_editor import YamlEdit, edited
from tests.support.paths import ROOT

TEXT = """\
# the head
why: >-
  A long reason over
  two lines.
engine: '>=0.5.10'   # tested
flags:
  # two cards
  tp: 2
  removed-by-a-child: null
  odd: "yes"
  backend:
    value: triton   # fast
    why: it works
  list: [1, 2]
accept:
- {id: x, reason: y}
"""


def lines_changed(edits: list[YamlEdit]) -> tuple[list[str], list[str]]:
    before, after = TEXT.splitlines(), edited(TEXT, edits).splitlines()
    return [line for line in before if line not in after], [line for line in after if line not in before]


@pytest.mark.parametrize("path", sorted((ROOT / "profiles").rglob("*.yaml")), ids=lambda path: path.stem)
def test_a_shipped_profile_without_edits_stays_as_it_is(path: Path) -> None:
    assert edited(path.read_text(), []) == path.read_text()


def test_a_value_is_replaced_and_its_comment_stays() -> None:
    edit = YamlEdit(path=("engine",), value=">=0.5.11")
    assert lines_changed([edit]) == (["engine: '>=0.5.10'   # tested"], ["engine: '>=0.5.11'   # tested"])


def test_a_mapping_is_updated_in_place() -> None:
    edit = YamlEdit(path=("flags", "backend"), value={"value": "triton", "why": "it works", "engine": "<0.5.14"})
    assert lines_changed([edit]) == ([], ["    engine: <0.5.14"])
    edit = YamlEdit(path=("flags", "backend"), value={"value": "fa3"})
    assert lines_changed([edit]) == (
        ["    value: triton   # fast", "    why: it works"],
        ["    value: fa3      # fast"],
    )


def test_a_new_key_ends_its_mapping_and_a_missing_mapping_is_made() -> None:
    edits = [
        YamlEdit(path=("flags", "page-size"), value={"value": "64", "why": "new"}),
        YamlEdit(path=("env", "A"), value="1"),
    ]
    assert lines_changed(edits) == ([], ["  page-size: {value: '64', why: new}", "env:", "  A: '1'"])


def test_a_key_is_removed_and_null_is_written_as_null() -> None:
    assert lines_changed([YamlEdit(path=("flags", "odd"), remove=True)]) == (['  odd: "yes"'], [])
    assert lines_changed([YamlEdit(path=("flags", "tp"))]) == (["  tp: 2"], ["  tp: null"])
    assert edited(TEXT, [YamlEdit(path=("nothing", "here"), remove=True)]) == TEXT
